module example.com/image-registries

go 1.24

require github.com/kubewarden/policy-sdk-go v0.12.0

require (
	github.com/go-openapi/strfmt v0.21.3 // indirect
	github.com/kubewarden/k8s-objects v1.29.0-kw1 // indirect
	github.com/wapc/wapc-guest-tinygo v0.3.3 // indirect
)

replace github.com/go-openapi/strfmt => github.com/kubewarden/strfmt v0.1.3
