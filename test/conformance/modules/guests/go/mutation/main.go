// mutation adds labels that an object does not have.
package main

import (
	"encoding/json"
	"errors"

	"example.com/corpus/command"
	kubewarden "github.com/kubewarden/policy-sdk-go"
	"github.com/kubewarden/policy-sdk-go/protocol"
)

// Settings names the labels and their values.
type Settings struct {
	Labels map[string]string `json:"labels"`
}

func main() {
	command.Main(command.Policy[Settings]{CheckSettings: check, Validate: addLabels})
}

func check(settings Settings) error {
	if len(settings.Labels) == 0 {
		return errors.New("labels: expected at least one")
	}
	return nil
}

func addLabels(request protocol.KubernetesAdmissionRequest, settings Settings) ([]byte, error) {
	var object map[string]any
	if err := json.Unmarshal(request.Object, &object); err != nil {
		return nil, err
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return nil, errors.New("the object has no metadata")
	}
	labels, ok := metadata["labels"].(map[string]any)
	if !ok {
		labels = map[string]any{}
		metadata["labels"] = labels
	}
	changed := false
	for name, value := range settings.Labels {
		if _, has := labels[name]; !has {
			labels[name] = value
			changed = true
		}
	}
	if !changed {
		return kubewarden.AcceptRequest()
	}
	return kubewarden.MutateRequest(object)
}
