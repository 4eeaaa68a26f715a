// context admits objects into namespaces that have a label.
package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"example.com/corpus/command"
	kubewarden "github.com/kubewarden/policy-sdk-go"
	"github.com/kubewarden/policy-sdk-go/pkg/capabilities"
	"github.com/kubewarden/policy-sdk-go/pkg/capabilities/kubernetes"
	"github.com/kubewarden/policy-sdk-go/protocol"
)

// Settings names the label.
type Settings struct {
	Label string `json:"label"`
}

func main() {
	command.Main(command.Policy[Settings]{CheckSettings: check, Validate: validate})
}

func check(settings Settings) error {
	if settings.Label == "" {
		return errors.New("label: expected the name of a label")
	}
	return nil
}

func validate(request protocol.KubernetesAdmissionRequest, settings Settings) ([]byte, error) {
	host := capabilities.NewHost()
	answer, err := kubernetes.GetResource(&host, kubernetes.GetResourceRequest{
		APIVersion: "v1", Kind: "Namespace", Name: request.Namespace,
	})
	if err != nil {
		return nil, fmt.Errorf("namespace %q could not be read: %w", request.Namespace, err)
	}
	var namespace struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(answer, &namespace); err != nil {
		return nil, err
	}
	if namespace.Metadata.Labels[settings.Label] == "" {
		return nil, fmt.Errorf("namespace %q has no label %q", request.Namespace, settings.Label)
	}
	return kubewarden.AcceptRequest()
}
