// A policy of the cluster as an entry of a policies file.
import type { AdmissionPolicyObject } from '../resources/index.ts';

/** A module, and what it may use: the spec of a policy, or a member of a group. */
interface ModuleSpec {
  readonly module: string;
  readonly settings?: unknown;
  readonly timeoutEvalSeconds?: number;
  readonly contextAwareResources?: readonly { readonly apiVersion: string; readonly kind: string }[];
}

export interface PolicyEntryOptions {
  /** Where `file://./…` leads: a URL of a folder that ends with a slash. Absent: such modules stay as they are. */
  readonly modulesUrl?: URL;
  /** Patterns of host capabilities that it may use. Default: all. */
  readonly hostCapabilities?: readonly string[];
}

/** The entry, to be written as JSON. */
export function policyEntry({ spec }: Pick<AdmissionPolicyObject, 'spec'>, options: PolicyEntryOptions = {}): object {
  const common = {
    policyMode: spec.mode ?? 'protect',
    ...(spec.message === undefined || spec.message === '' ? {} : { message: spec.message }),
    ...(spec.failurePolicy === undefined ? {} : { failurePolicy: spec.failurePolicy }),
  };
  // Not the function of src/resources: a server for a file loads nothing of kinds.
  if ('policies' in spec) {
    const members = Object.entries(spec.policies).map(([name, member]) => [name, moduleUse(member, options)]);
    return { ...common, expression: spec.expression, policies: Object.fromEntries(members) };
  }
  return { ...common, allowedToMutate: spec.mutating, ...moduleUse(spec, options) };
}

function moduleUse(spec: ModuleSpec, { modulesUrl, hostCapabilities = ['*'] }: PolicyEntryOptions): object {
  const { module, settings, timeoutEvalSeconds, contextAwareResources } = spec;
  const isRelative = module.startsWith('file://./');
  return {
    module: isRelative && modulesUrl !== undefined ? new URL(module.slice('file://'.length), modulesUrl).href : module,
    settings: settings ?? {},
    ...(timeoutEvalSeconds === undefined ? {} : { timeoutEvalSeconds }),
    contextAwareResources: contextAwareResources ?? [],
    hostCapabilities,
  };
}
