// Checks that policies declare the rights that their settings need, and that these rights exist. Without them, a policy would
// reject or admit every request.
import type { SettingsNeed } from '../../engine/index.ts';
import { nearestKey } from '../../values/index.ts';
import {
  type AdmissionPolicySpec,
  builtinKinds,
  forbidden,
  groupVersionOf,
  invalid,
  isGroupSpec,
  type PolicyParameters,
} from '../../resources/index.ts';
import type { Findings } from './findings.ts';
import type { RejectionCode } from './rule-codes.ts';

/** A module with its settings and rights: of a policy, or of a member of a group. */
export interface SpecModule {
  /** Path: `spec`, or `spec.policies[name]`. */
  readonly field: string;
  readonly module: string;
  readonly settings?: unknown;
  readonly parameters?: PolicyParameters;
  /** Undefined for members of groups, which never change objects. */
  readonly mutating?: boolean;
  readonly contextAwareResources: readonly { readonly apiVersion: string; readonly kind: string }[];
}

export function modulesOf(spec: AdmissionPolicySpec): readonly SpecModule[] {
  return isGroupSpec(spec)
    ? Object.entries(spec.policies).map(([name, member]) => ({
        ...member,
        field: `spec.policies[${name}]`,
        contextAwareResources: resourcesOf(member),
      }))
    : [{ ...spec, field: 'spec', contextAwareResources: resourcesOf(spec) }];
}

/** Policies of namespaces do not have the field. */
function resourcesOf(
  use: Pick<SpecModule, 'module'> & Partial<Pick<SpecModule, 'contextAwareResources'>>,
): SpecModule['contextAwareResources'] {
  return use.contextAwareResources ?? [];
}

/** Checks what the settings of a builtin module need. */
export function checkNeeds(
  { field, mutating, contextAwareResources }: SpecModule,
  needs: readonly SettingsNeed[],
  isNamespaced: boolean,
  findings: Findings,
): void {
  for (const need of needs) {
    const at = `${field}.settings.${need.field}`;
    if (need.right === 'mutate') {
      if (mutating !== true) {
        const detail =
          mutating === undefined
            ? 'members of a group cannot change objects, and every change would be a rejection: use a policy of its own'
            : 'a policy with mutating: false cannot change objects, and every change would be a rejection: set spec.mutating to true';
        findings.reject('settings-rights', forbidden(at, detail));
      }
    }
    if (need.right !== 'read') {
      continue;
    }
    const { apiVersion, kind } = need.resource;
    if (!contextAwareResources.some((one) => one.apiVersion === apiVersion && one.kind === kind)) {
      const what = `reads ${apiVersion}/${kind} from the cluster, which the policy may not`;
      const action = isNamespaced
        ? 'policies of a namespace never may. Use a cluster-wide policy, or decide by the request alone'
        : `add {apiVersion: ${apiVersion}, kind: ${kind}} to ${field}.contextAwareResources`;
      findings.reject('settings-rights', forbidden(at, `${what}: ${action}`));
    }
  }
}

export function checkContextAwareKinds({ field, contextAwareResources }: SpecModule, findings: Findings): void {
  for (const [index, resource] of contextAwareResources.entries()) {
    checkKindName(resource, 'context-aware-kind', `${field}.contextAwareResources[${index}]`, findings);
  }
}

/** Checks the name of a kind where all are known: API servers accept no CustomResourceDefinition for a group without a dot. */
export function checkKindName(
  { apiVersion, kind }: SpecModule['contextAwareResources'][number],
  code: RejectionCode,
  at: string,
  findings: Findings,
): void {
  const { group, version } = groupVersionOf(apiVersion);
  const kinds = builtinKinds(group).map((one) => one.kind);
  if (group === '' && version !== 'v1') {
    const detail = 'expected "v1" for the core group, or a group and a version such as "apps/v1"';
    findings.reject(code, invalid(`${at}.apiVersion`, apiVersion, detail));
  } else if (!group.includes('.') && !kinds.includes(kind)) {
    const same = kinds.find((one) => one.toLowerCase() === kind.toLowerCase());
    const nearest = same ?? nearestKey(kind, kinds);
    const hint = nearest === undefined ? '' : `. Did you mean ${nearest}?`;
    const detail = `Kubernetes has no such kind in ${apiVersion}${hint}`;
    findings.reject(code, invalid(`${at}.kind`, kind, detail));
  }
}
