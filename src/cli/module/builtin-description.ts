// What `portcullis inspect builtin:NAME` shows: the settings of a builtin module, which has no file.
import { type BuiltinName, builtinVersion } from '../../modules/index.ts';

/** A builtin module, for its users. */
export interface BuiltinDescription {
  readonly purpose: string;
  /** The page of the documentation, from the root of the package. */
  readonly page: string;
  /** What each key of the settings is, in the order of the page. */
  readonly settings: Readonly<Record<string, string>>;
}

const LEVEL = 'privileged, baseline or restricted';
const LEVEL_VERSION = 'latest, or a version of Kubernetes such as v1.34';

export const BUILTIN_DESCRIPTIONS: Readonly<Record<BuiltinName, BuiltinDescription>> = {
  cel: {
    purpose: 'expressions in CEL, as in a ValidatingAdmissionPolicy or MutatingAdmissionPolicy',
    page: 'docs/builtin-cel.md',
    settings: {
      validations: 'list of {expression, message, messageExpression, reason}: each must be true',
      auditAnnotations: 'list of {key, valueExpression}',
      mutations: 'list of {patchType, applyConfiguration, jsonPatch}, instead of validations',
      reinvocationPolicy: 'IfNeeded or Never; with mutations only',
      variables: 'list of {name, expression}, for the other expressions',
      matchConstraints: 'what requests it is for: {resourceRules, excludeResourceRules, …}',
      matchConditions: 'list of {name, expression}: the policy is skipped unless all are true',
      paramKind: 'the {apiVersion, kind} of parameters',
      paramRef: 'which parameters: {name, namespace, selector, parameterNotFoundAction}',
      failurePolicy: 'Fail or Ignore: what an error of an expression does',
    },
  },
  'network-policy-support': {
    purpose: 'warns of NetworkPolicies that the network provider does not implement',
    page: 'docs/network-policy.md',
    settings: {
      deny: 'true: rejects them instead; default false',
      providers: 'list of {name, version, settings}; default: those that are detected in the cluster',
      catalogue: 'further providers, in the format of catalogue files',
    },
  },
  'pod-profile': {
    purpose: 'sets defaults of pods and checks them, as a PodSecurityPolicy did',
    page: 'docs/pod-profile.md',
    settings: {
      runAsUser: 'required: a user id, or {rule, ranges} with MustRunAs, MustRunAsNonRoot or RunAsAny',
      runAsGroup: 'a group id, or {rule, ranges}; default RunAsAny',
      fsGroup: 'required: a group id, or {rule, ranges}',
      supplementalGroups: 'required: a group id, or {rule, ranges}',
      seLinux: 'required: RunAsAny, or {rule: MustRunAs, seLinuxOptions}',
      privileged: 'whether containers may be privileged; default false',
      allowPrivilegeEscalation: 'false: containers get false, and must not have true; default true',
      defaultAllowPrivilegeEscalation: 'for containers that do not say',
      allowedCapabilities: 'may be added; "*": all; default none',
      defaultAddCapabilities: 'are added, unless the container drops them',
      requiredDropCapabilities: 'are dropped',
      readOnlyRootFilesystem: 'true: containers get true, and must not have false',
      allowedSeccompProfiles: 'RuntimeDefault, Unconfined, localhost/PROFILE; "*": all',
      defaultSeccompProfile: 'for pods without one',
      allowedAppArmorProfiles: 'as for seccomp; default all',
      defaultAppArmorProfile: 'for pods without one',
      allowedProcMountTypes: 'Default, Unmasked; default Default',
      hostNetwork: 'whether pods may use it; default false',
      hostPID: 'whether pods may use it; default false',
      hostIPC: 'whether pods may use it; default false',
      hostPorts: 'list of {min, max}; default none',
      allowedUnsafeSysctls: 'names, or a prefix and *; default none',
      forbiddenSysctls: 'names, or a prefix and *; default none',
      volumes: 'types of volumes; "*": all; default none',
      allowedHostPaths: 'list of {pathPrefix, readOnly}; default all',
      allowedFlexVolumes: 'list of {driver}; default all',
      allowedCSIDrivers: 'list of {name}; default all',
      runtimeClass: '{allowedRuntimeClassNames, defaultRuntimeClassName}; default all',
    },
  },
  'pod-security': {
    purpose: 'the Pod Security Standards',
    page: 'docs/pod-security.md',
    settings: {
      enforce: `${LEVEL}: pods that violate it are rejected`,
      'enforce-version': LEVEL_VERSION,
      audit: `${LEVEL}: pods that violate it get an audit annotation`,
      'audit-version': LEVEL_VERSION,
      warn: `${LEVEL}: pods that violate it get a warning; default as enforce`,
      'warn-version': LEVEL_VERSION,
      exemptions: '{usernames, runtimeClasses, namespaces}',
      workloads: 'warn or enforce: what a violation in the template of a workload does',
      defaults: 'the six keys above, as in a PodSecurityConfiguration',
      apiVersion: 'of a PodSecurityConfiguration',
      kind: 'PodSecurityConfiguration',
    },
  },
};

/** The description as JSON and YAML. */
export interface BuiltinReport extends BuiltinDescription {
  readonly location: string;
  readonly version: string;
}

export function builtinReport(name: BuiltinName): BuiltinReport {
  return { location: `builtin:${name}`, version: builtinVersion(name), ...BUILTIN_DESCRIPTIONS[name] };
}
