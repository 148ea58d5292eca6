"""The two local functions, and a route to them by name."""

# sample: run one of two functions by its name
def get_weather(city):
    data = {"北京": ("晴", 22), "上海": ("多云", 25), "广州": ("雷阵雨", 30)}
    weather, temp = data.get(city, ("暂无数据", None))
    return {"city": city, "weather": weather, "temp_c": temp}

def calculate(a, b, op):
    if op == "div" and b == 0:
        return {"error": "除数不能为 0"}
    result = {"add": a + b, "sub": a - b, "mul": a * b, "div": a / b}[op]
    return {"result": result}

def call_function(name, args):
    if name == "get_weather":
        return get_weather(**args)
    if name == "calculate":
        return calculate(**args)
    raise ValueError(f"未知函数: {name}")
# end of sample
