package main

import (
	"context"
	"errors"
	"time"
)

type weatherIn struct {
	City string `json:"city"`
}

type weatherOut struct {
	City    string `json:"city"`
	Weather string `json:"weather"`
	TempC   *int   `json:"temp_c"`
}

type calculateIn struct {
	A  float64 `json:"a"`
	B  float64 `json:"b"`
	Op string  `json:"op"`
}

type calculateOut struct {
	Result float64 `json:"result"`
}

type timeOut struct {
	Time string `json:"time"`
}

type forecast struct {
	weather string
	temp    int
}

// assistant says in one language what the functions return.
type assistant struct {
	forecasts      map[string]forecast
	noData         string
	divisionByZero error
}

var assistants = map[string]assistant{
	"zh": {
		forecasts:      map[string]forecast{"北京": {"晴", 22}, "上海": {"多云", 25}, "广州": {"雷阵雨", 30}},
		noData:         "暂无数据",
		divisionByZero: errors.New("除数不能为 0"),
	},
	"en": {
		forecasts:      map[string]forecast{"Beijing": {"sunny", 22}, "Shanghai": {"cloudy", 25}, "Guangzhou": {"thunderstorms", 30}},
		noData:         "no data",
		divisionByZero: errors.New("division by zero"),
	},
}

func (a assistant) getWeather(_ context.Context, in weatherIn) (weatherOut, error) {
	f, ok := a.forecasts[in.City]
	if !ok {
		return weatherOut{City: in.City, Weather: a.noData}, nil
	}
	return weatherOut{City: in.City, Weather: f.weather, TempC: &f.temp}, nil
}

// calculate trusts op: the arguments were checked against the schema, which lists the operations. An error is what the
// model reads, so that it can ask in another way or tell the user.
func (a assistant) calculate(_ context.Context, in calculateIn) (calculateOut, error) {
	switch in.Op {
	case "add":
		return calculateOut{in.A + in.B}, nil
	case "sub":
		return calculateOut{in.A - in.B}, nil
	case "mul":
		return calculateOut{in.A * in.B}, nil
	}
	if in.B == 0 {
		return calculateOut{}, a.divisionByZero
	}
	return calculateOut{in.A / in.B}, nil
}

func (assistant) getTime(context.Context, struct{}) (timeOut, error) {
	return timeOut{time.Now().Format("15:04")}, nil
}
