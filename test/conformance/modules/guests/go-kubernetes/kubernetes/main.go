// kubernetes decodes objects with the types of all kinds of Kubernetes, and
// decides pods by the Pod Security Standards. It links what policies link that
// have a whole policy engine in them.
package main

import (
	"errors"

	"example.com/corpus/command"
	kubewarden "github.com/kubewarden/policy-sdk-go"
	"github.com/kubewarden/policy-sdk-go/protocol"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// Settings name what pods may be.
type Settings struct {
	Level string `json:"level"`
	// Server links the clients of all kinds: no policy reaches one.
	Server string `json:"server"`
}

func main() {
	command.Main(command.Policy[Settings]{CheckSettings: checkSettings, Validate: validate})
}

func checkSettings(settings Settings) error {
	if settings.Server != "" {
		clients, err := kubernetes.NewForConfig(&rest.Config{Host: settings.Server})
		if err != nil {
			return err
		}
		if _, err := clients.ServerVersion(); err != nil {
			return err
		}
	}
	_, err := api.ParseLevel(settings.Level)
	return err
}

func validate(request protocol.KubernetesAdmissionRequest, settings Settings) ([]byte, error) {
	object, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), request.Object)
	if err != nil {
		return nil, err
	}
	pod, isPod := object.(*corev1.Pod)
	if !isPod {
		return kubewarden.AcceptRequest()
	}
	level, err := api.ParseLevel(settings.Level)
	if err != nil {
		return nil, err
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks())
	if err != nil {
		return nil, err
	}
	version := api.LevelVersion{Level: level, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(version, &pod.ObjectMeta, &pod.Spec))
	if result.Allowed {
		return kubewarden.AcceptRequest()
	}
	return nil, errors.New(result.ForbiddenDetail())
}
