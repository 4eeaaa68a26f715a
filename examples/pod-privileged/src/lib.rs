//! pod-privileged: rejects workloads with a container that runs privileged.
//!
//! Built with Kubewarden's Rust SDK. It looks at pods and at everything that makes pods (Deployments, Jobs, …).

use k8s_openapi::api::core::v1::{Container, EphemeralContainer, PodSpec};
use kubewarden_policy_sdk::{
    accept_request, protocol_version_guest, reject_request, request::ValidationRequest,
    settings::Validatable, validate_settings, wapc_guest as guest,
};
use serde::{Deserialize, Serialize};

/// What the policy leaves alone; nothing unless told.
#[derive(Serialize, Deserialize, Debug, Default)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    skip_init_containers: bool,
    skip_ephemeral_containers: bool,
}

impl Validatable for Settings {
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn wapc_init() {
    guest::register_function("validate", validate);
    guest::register_function("validate_settings", validate_settings::<Settings>);
    guest::register_function("protocol_version", protocol_version_guest);
}

fn validate(payload: &[u8]) -> guest::CallResult {
    let validation: ValidationRequest<Settings> = ValidationRequest::new(payload)?;
    let Some(spec) = validation.extract_pod_spec_from_object()? else {
        return accept_request();
    };
    let privileged = privileged_containers(&spec, &validation.settings);
    if privileged.is_empty() {
        return accept_request();
    }
    let message = format!(
        "privileged containers are not allowed: {}. Set securityContext.privileged to false",
        privileged.join(", ")
    );
    reject_request(Some(message), None, None, None)
}

/// The names of the containers that run privileged, in the order of the pod.
fn privileged_containers<'a>(spec: &'a PodSpec, settings: &Settings) -> Vec<&'a str> {
    let init = spec
        .init_containers
        .iter()
        .flatten()
        .filter(|_| !settings.skip_init_containers);
    let ephemeral = spec
        .ephemeral_containers
        .iter()
        .flatten()
        .filter(|_| !settings.skip_ephemeral_containers);
    init.chain(&spec.containers)
        .filter(|container| is_privileged(container))
        .map(|container| container.name.as_str())
        .chain(
            ephemeral
                .filter(|container| is_privileged_ephemeral(container))
                .map(|container| container.name.as_str()),
        )
        .collect()
}

fn is_privileged(container: &Container) -> bool {
    container
        .security_context
        .as_ref()
        .is_some_and(|context| context.privileged == Some(true))
}

fn is_privileged_ephemeral(container: &EphemeralContainer) -> bool {
    container
        .security_context
        .as_ref()
        .is_some_and(|context| context.privileged == Some(true))
}
