//! pod-privileged: rejects workloads with a container that runs privileged.
//!
//! Built with Kubewarden's Rust SDK. It looks at pods and at everything that makes pods (Deployments, Jobs, …).

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    Container, EphemeralContainer, Pod, PodSpec, ReplicationController,
};
use kubewarden_policy_sdk::{
    accept_request, protocol_version_guest, reject_request, settings::Validatable,
    validate_settings, wapc_guest as guest,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

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

/// What the policy reads of a request. The object stays text until its kind is known: so it is parsed once, into its type.
#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(borrow)]
    request: Request<'a>,
    #[serde(default)]
    settings: Settings,
}

#[derive(Deserialize)]
struct Request<'a> {
    kind: Kind,
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

fn validate(payload: &[u8]) -> guest::CallResult {
    let Payload { request, settings } = serde_json::from_slice(payload)?;
    let object = request.object.map_or("null", RawValue::get);
    let Some(spec) = pod_spec(&request.kind.kind, object)? else {
        return accept_request();
    };
    let privileged = privileged_containers(&spec, &settings);
    if privileged.is_empty() {
        return accept_request();
    }
    let message = format!(
        "privileged containers are not allowed: {}. Set securityContext.privileged to false",
        privileged.join(", ")
    );
    reject_request(Some(message), None, None, None)
}

/// The pod that an object is or makes; nothing for other kinds, and for objects that are gone (DELETE).
fn pod_spec(kind: &str, object: &str) -> serde_json::Result<Option<PodSpec>> {
    macro_rules! spec {
        ($type:ty, $object:ident => $spec:expr) => {
            serde_json::from_str::<Option<$type>>(object)?.and_then(|$object| $spec)
        };
    }
    Ok(match kind {
        "Pod" => spec!(Pod, pod => pod.spec),
        "Deployment" => spec!(Deployment, it => it.spec?.template.spec),
        "ReplicaSet" => spec!(ReplicaSet, it => it.spec?.template?.spec),
        "StatefulSet" => spec!(StatefulSet, it => it.spec?.template.spec),
        "DaemonSet" => spec!(DaemonSet, it => it.spec?.template.spec),
        "ReplicationController" => spec!(ReplicationController, it => it.spec?.template?.spec),
        "Job" => spec!(Job, it => it.spec?.template.spec),
        "CronJob" => spec!(CronJob, it => it.spec.job_template.spec?.template.spec),
        _ => None,
    })
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
