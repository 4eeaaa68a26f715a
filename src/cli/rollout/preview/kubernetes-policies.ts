// ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings, as policies that a preview judges by.
import { auditPolicy, type AuditPolicy } from '../../../audit/index.ts';
import { listAll, unlessGone } from '../../../cluster/index.ts';
import { importPolicies, type JsonObject } from '../../../engine/index.ts';
import type { AdmissionPolicyObject } from '../../../resources/index.ts';
import { asJson, own, textOf, valueAt } from '../../../values/index.ts';
import type { Connected } from '../../cluster/cluster-flags.ts';
import { CliError } from '../../errors.ts';

const ADMISSION = 'admissionregistration.k8s.io';
const KUBERNETES_KINDS: Readonly<Record<string, string>> = {
  vap: 'ValidatingAdmissionPolicy',
  validatingadmissionpolicy: 'ValidatingAdmissionPolicy',
  validatingadmissionpolicies: 'ValidatingAdmissionPolicy',
  map: 'MutatingAdmissionPolicy',
  mutatingadmissionpolicy: 'MutatingAdmissionPolicy',
  mutatingadmissionpolicies: 'MutatingAdmissionPolicy',
};

/** A policy of Kubernetes in a cluster. */
export interface KubernetesPolicy {
  readonly kind: string;
  readonly name: string;
}

/** The policy of Kubernetes with a name such as `vap/one`; undefined for ours. */
export function kubernetesPolicyOf(text: string): KubernetesPolicy | undefined {
  const [type = '', name = ''] = text.split('/');
  const kind = own(KUBERNETES_KINDS, type.toLowerCase());
  return typeof kind === 'string' && name !== '' ? { kind, name } : undefined;
}

/** A policy of the cluster and its bindings; none if there is no such policy. */
export async function kubernetesManifests(
  { kind, name }: KubernetesPolicy,
  { cluster }: Pick<Connected, 'cluster'>,
): Promise<readonly JsonObject[]> {
  const types = await cluster.discovery.resources();
  const type = types.find((one) => one.group === ADMISSION && one.kind === kind);
  const binding = types.find((one) => one.group === ADMISSION && one.kind === `${kind}Binding`);
  const policy = type && (await unlessGone(cluster.get(type, { name })));
  if (policy === undefined || binding === undefined) {
    return [];
  }
  const { items } = await listAll(cluster, binding);
  return [policy, ...items].map((one) => asJson(one)).filter((one, index) => index === 0 || isBindingOf(one, name));
}

/** The policy of files with their bindings; with those of the cluster where they have none. */
export async function manifestsWithBindings(
  manifests: readonly JsonObject[],
  connected: Pick<Connected, 'cluster'> | undefined,
): Promise<readonly JsonObject[]> {
  const found = withOwnBindings(manifests);
  const [policy = {}] = found;
  if (found.length > 1 || connected === undefined) {
    return found;
  }
  const name = textOf(valueAt(policy, 'metadata', 'name'));
  const [, ...bindings] = await kubernetesManifests({ kind: textOf(policy['kind']), name }, connected);
  return [policy, ...bindings];
}

/** Without the other manifests beside a policy. */
export function withOwnBindings([policy = {}, ...others]: readonly JsonObject[]): readonly JsonObject[] {
  const name = textOf(valueAt(policy, 'metadata', 'name'));
  return [policy, ...others.filter((one) => isBindingOf(one, name))];
}

export function isBindingOf(manifest: JsonObject, policy: string): boolean {
  return (
    textOf(manifest['kind']).endsWith('AdmissionPolicyBinding') && valueAt(manifest, 'spec', 'policyName') === policy
  );
}

/** As policies of `builtin:cel`, which have the same verdicts. Without a binding API servers evaluate nothing. */
export async function importedPolicies(
  manifests: readonly JsonObject[],
  name: string,
): Promise<readonly AuditPolicy[]> {
  if (manifests.length < 2) {
    return [];
  }
  const { policies, problems } = await importPolicies(manifests);
  if (problems.length > 0) {
    const texts = problems.map(
      ({ manifest, field, message }) => `${manifest}: ${field === '' ? '' : `${field}: `}${message}`,
    );
    throw new CliError(`${name} cannot be judged by: ${texts.join('; ')}`);
  }
  return policies.map((policy) => {
    // API servers evaluate their own policies in all namespaces.
    const read = auditPolicy(policy as unknown as AdmissionPolicyObject, {
      productNamespace: '',
      exemptNamespaces: [],
    });
    if ('id' in read) {
      return read;
    }
    throw new CliError(`${name} cannot be judged by: ${read.problems.join('; ')}`);
  });
}
