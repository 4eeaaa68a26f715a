// Converts a policy of the cluster to an entry of a policies file.
import type { AdmissionPolicyObject } from '../../resources/index.ts';

/** A module with its settings: the spec of a policy, or a member of a group. */
interface ModuleSpec {
  readonly module: string;
  readonly settings?: unknown;
  readonly timeoutEvalSeconds?: number;
  readonly contextAwareResources?: readonly { readonly apiVersion: string; readonly kind: string }[];
  readonly parameters?: object;
}

export interface PolicyEntryOptions {
  /** Folder that `file://./…` is relative to: a URL that ends with a slash. Absent: such references stay unchanged. */
  readonly modulesUrl?: URL;
  /** Patterns of host capabilities that the policy may use. Default: all. */
  readonly hostCapabilities?: readonly string[];
}

/** The entry as a value to be serialized as JSON. */
export function policyEntry({ spec }: Pick<AdmissionPolicyObject, 'spec'>, options: PolicyEntryOptions = {}): object {
  const common = {
    policyMode: spec.mode ?? 'protect',
    ...(spec.message === undefined || spec.message === '' ? {} : { message: spec.message }),
    ...failurePolicyOf(spec),
    ...podTemplatesOf(spec),
  };
  // Not `isGroup` of src/resources: a server for a policies file does not load the kinds.
  if ('policies' in spec) {
    const members = Object.entries(spec.policies).map(([name, member]) => [name, moduleUse(member, options)]);
    return { ...common, expression: spec.expression, policies: Object.fromEntries(members) };
  }
  return { ...common, allowedToMutate: spec.mutating, ...moduleUse(spec, options) };
}

/** A value that only a newer version knows does not keep the policy from being loaded. */
function podTemplatesOf({ podTemplates }: AdmissionPolicyObject['spec']): { readonly podTemplates?: string } {
  return podTemplates === 'Warn' || podTemplates === 'Enforce' ? { podTemplates } : {};
}

/** In a cluster, unlike in a policies file, a policy in monitor mode rejects nothing, whatever fails. */
function failurePolicyOf({ failurePolicy, mode }: AdmissionPolicyObject['spec']): { readonly failurePolicy?: string } {
  const effective = mode === 'monitor' ? 'Ignore' : failurePolicy;
  return effective === undefined ? {} : { failurePolicy: effective };
}

function moduleUse(spec: ModuleSpec, { modulesUrl, hostCapabilities = ['*'] }: PolicyEntryOptions): object {
  const { module, settings, timeoutEvalSeconds, contextAwareResources, parameters } = spec;
  const isRelative = module.startsWith('file://./');
  return {
    module: isRelative && modulesUrl !== undefined ? new URL(module.slice('file://'.length), modulesUrl).href : module,
    settings: settings ?? {},
    ...(timeoutEvalSeconds === undefined ? {} : { timeoutEvalSeconds }),
    ...(parameters === undefined ? {} : { parameters }),
    contextAwareResources: contextAwareResources ?? [],
    hostCapabilities,
  };
}
