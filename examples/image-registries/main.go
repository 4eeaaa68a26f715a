// image-registries rejects workloads with a container image that does not come
// from one of the places that the settings name.
//
// It is a WASI command: the server starts it with "validate" or
// "validate-settings", writes JSON to its standard input and reads the answer
// from its standard output.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	kubewarden "github.com/kubewarden/policy-sdk-go"
	"github.com/kubewarden/policy-sdk-go/protocol"
)

// Settings names what is allowed.
type Settings struct {
	// Allowed is a list of prefixes, such as "example.com/shop/".
	Allowed []string `json:"allowed"`
}

func main() {
	answer, err := run(os.Args, os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if _, err := os.Stdout.Write(answer); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader) ([]byte, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("expected one argument, validate or validate-settings, got %d", len(args)-1)
	}
	payload, err := io.ReadAll(stdin)
	if err != nil {
		return nil, err
	}
	switch args[1] {
	case "validate":
		return validate(payload)
	case "validate-settings":
		return validateSettings(payload)
	default:
		return nil, fmt.Errorf("expected validate or validate-settings, got %q", args[1])
	}
}

func validate(payload []byte) ([]byte, error) {
	request := protocol.ValidationRequest{}
	if err := json.Unmarshal(payload, &request); err != nil {
		return kubewarden.RejectRequest(kubewarden.Message(err.Error()), 400)
	}
	settings := Settings{}
	if err := json.Unmarshal(request.Settings, &settings); err != nil {
		return kubewarden.RejectRequest(kubewarden.Message(err.Error()), 400)
	}
	pod, err := kubewarden.ExtractPodSpecFromObject(request)
	if err != nil {
		return kubewarden.RejectRequest(kubewarden.Message(err.Error()), 400)
	}
	var foreign []string
	for _, container := range append(pod.InitContainers, pod.Containers...) {
		if !settings.allow(container.Image) {
			foreign = append(foreign, container.Image)
		}
	}
	if len(foreign) == 0 {
		return kubewarden.AcceptRequest()
	}
	message := fmt.Sprintf("images from elsewhere are not allowed: %s. Use images from %s",
		strings.Join(foreign, ", "), strings.Join(settings.Allowed, " or "))
	return kubewarden.RejectRequest(kubewarden.Message(message), kubewarden.NoCode)
}

func (s Settings) allow(image string) bool {
	for _, prefix := range s.Allowed {
		if strings.HasPrefix(image, prefix) {
			return true
		}
	}
	return false
}

func validateSettings(payload []byte) ([]byte, error) {
	settings := Settings{}
	if err := json.Unmarshal(payload, &settings); err != nil {
		return kubewarden.RejectSettings(kubewarden.Message(err.Error()))
	}
	if len(settings.Allowed) == 0 {
		return kubewarden.RejectSettings(`allowed: expected at least one prefix of images, such as "example.com/shop/"`)
	}
	for i, prefix := range settings.Allowed {
		if !strings.Contains(prefix, "/") {
			return kubewarden.RejectSettings(kubewarden.Message(fmt.Sprintf(
				"allowed[%d]: %q would also fit other registries that begin like it, end it with /", i, prefix)))
		}
	}
	return kubewarden.AcceptSettings()
}
