package test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// scaledObject is a ScaledObject as far as it says how many replicas there are.
type scaledObject struct {
	Spec struct {
		PollingInterval, CooldownPeriod, MinReplicaCount, MaxReplicaCount int
		Advanced                                                          struct {
			HorizontalPodAutoscalerConfig struct {
				Behavior autoscalingv2.HorizontalPodAutoscalerBehavior
			}
		}
		Triggers []struct {
			Type, MetricType string
			Metadata         map[string]string
		}
	}
}

// scaler computes replicas as KEDA 2.21 and the HPA that it makes do: KEDA goes from zero to one and back, the HPA does
// what is between. One second of Kubernetes takes `second`.
type scaler struct {
	scaledObject
	second time.Duration

	replicas   int
	lastActive time.Time
	// wanted are the HPA's recommendations within the time that it looks back.
	wanted []recommendation
	// scaledUp is what was added within the last 15 s, which the HPA bounds.
	scaledUp []recommendation
}

type recommendation struct {
	at       time.Time
	replicas int
}

func (s *scaler) seconds(n int) time.Duration { return time.Duration(n) * s.second }

// lag is what the scaler reads at the monitoring port: calls that wait, and calls that are with executors.
func (s *scaler) lag(t *testing.T, monitoring string) int {
	t.Helper()
	trigger := s.Spec.Triggers[0].Metadata
	response, err := http.Get(fmt.Sprintf("%s/jsz?acc=%s&consumers=true&config=true", monitoring, trigger["account"])) //nolint:noctx // a test
	require.NoError(t, err)
	defer response.Body.Close()
	var answer struct {
		Accounts []struct {
			Name    string `json:"name"`
			Streams []struct {
				Name      string `json:"name"`
				Consumers []struct {
					Name          string `json:"name"`
					NumPending    int    `json:"num_pending"`
					NumAckPending int    `json:"num_ack_pending"`
				} `json:"consumer_detail"`
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	for _, account := range answer.Accounts {
		for _, stream := range account.Streams {
			for _, consumer := range stream.Consumers {
				if account.Name == trigger["account"] && stream.Name == trigger["stream"] && consumer.Name == trigger["consumer"] {
					return consumer.NumPending + consumer.NumAckPending
				}
			}
		}
	}
	require.Fail(t, "KEDA would not find the consumer", "%+v", trigger)
	return 0
}

// scale is the number of replicas after one look at the lag.
func (s *scaler) scale(t *testing.T, lag int, now time.Time) int {
	t.Helper()
	number := func(key string) int {
		n, err := strconv.Atoi(s.Spec.Triggers[0].Metadata[key])
		require.NoError(t, err)
		return n
	}
	active := lag > number("activationLagThreshold")
	if active {
		s.lastActive = now
	}
	switch {
	case s.replicas == 0 && active:
		s.wanted, s.scaledUp = nil, nil
		s.replicas = max(1, s.Spec.MinReplicaCount)
	case s.replicas == 0:
	case !active && s.Spec.MinReplicaCount == 0 && now.Sub(s.lastActive) >= s.seconds(s.Spec.CooldownPeriod):
		s.replicas = 0
	default:
		s.replicas = s.horizontal(lag, number("lagThreshold"), now)
	}
	return s.replicas
}

// horizontal is what the HPA makes of an AverageValue.
func (s *scaler) horizontal(lag, threshold int, now time.Time) int {
	desired := int(math.Ceil(float64(lag) / float64(threshold)))
	if ratio := float64(lag) / float64(threshold*s.replicas); math.Abs(ratio-1) <= 0.1 {
		desired = s.replicas
	}
	desired = min(max(desired, 1, s.Spec.MinReplicaCount), s.Spec.MaxReplicaCount)
	window := s.seconds(int(*s.Spec.Advanced.HorizontalPodAutoscalerConfig.Behavior.ScaleDown.StabilizationWindowSeconds))
	s.wanted = append(within(s.wanted, now, window), recommendation{now, desired})
	if desired < s.replicas { // the highest of the window
		for _, r := range s.wanted {
			desired = max(desired, r.replicas)
		}
		return min(desired, s.replicas)
	}
	s.scaledUp = within(s.scaledUp, now, s.seconds(15))
	before := s.replicas
	for _, r := range s.scaledUp {
		before -= r.replicas
	}
	desired = min(desired, max(2*before, before+4)) // the default policies: double, or four, in 15 s
	desired = max(desired, s.replicas)
	s.scaledUp = append(s.scaledUp, recommendation{now, desired - s.replicas})
	return desired
}

func within(all []recommendation, now time.Time, window time.Duration) []recommendation {
	return slices.DeleteFunc(all, func(r recommendation) bool { return now.Sub(r.at) > window })
}
