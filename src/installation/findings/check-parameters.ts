// Warns of tenants that may write the parameters of policies: Kubernetes' roles for users of a namespace.
import {
  type AdmissionPolicyObject,
  builtinKind,
  groupResourceOf,
  groupVersionOf,
  isGroupSpec,
  type KubernetesObject,
  type PolicyParameters,
} from '../../resources/index.ts';
import { isJsonObject, own, textOf, textsOf } from '../../values/index.ts';
import { type Finding, finding } from './finding.ts';
import type { Snapshot } from './snapshot.ts';

/** The roles that users of a namespace usually have. */
const TENANT_ROLES: readonly string[] = ['admin', 'edit'];
const WRITE: readonly string[] = ['create', 'update', 'patch'];

interface GroupResource {
  readonly group: string;
  readonly resource: string;
}

export function checkParameters(snapshot: Snapshot, policy: AdmissionPolicyObject, where: string): readonly Finding[] {
  const written = parametersOf(policy).flatMap(({ from }) => writtenFor(from, snapshot.definitions) ?? []);
  const resources = new Map(written.map((one) => [groupResourceOf(one), one]));
  return [...resources].flatMap(([name, { group, resource }]) => {
    const roles = snapshot.roles.filter((role) => isTenantRole(role) && mayWrite(role, { group, resource }));
    if (roles.length === 0) {
      return [];
    }
    const list = roles.map(({ metadata }) => metadata.name).join(' and ');
    const message = `its parameters are in ${name}, which users with the ClusterRole ${list} may write: they choose the overridable settings of their namespace`;
    return [
      finding('ParametersWritable', where, message, 'Use another kind, or check the values in settingsExpression.'),
    ];
  });
}

function parametersOf({ spec }: AdmissionPolicyObject): readonly PolicyParameters[] {
  const uses: readonly { readonly parameters?: PolicyParameters }[] = isGroupSpec(spec)
    ? Object.values(spec.policies)
    : [spec];
  return uses.flatMap(({ parameters }) => parameters ?? []);
}

/** The resource that holds parameters; undefined when the kind is unknown. */
function writtenFor(
  { resource }: PolicyParameters['from'],
  definitions: readonly KubernetesObject[],
): GroupResource | undefined {
  if (resource === undefined) {
    return { group: '', resource: 'namespaces' };
  }
  const { group } = groupVersionOf(resource.apiVersion);
  const builtin = builtinKind(group, resource.kind);
  const plural = builtin?.resource ?? pluralOf(group, resource.kind, definitions);
  return plural === undefined ? undefined : { group, resource: plural };
}

function pluralOf(group: string, kind: string, definitions: readonly KubernetesObject[]): string | undefined {
  for (const { spec } of definitions as readonly (KubernetesObject & { readonly spec?: unknown })[]) {
    const names = isJsonObject(spec) ? own(spec, 'names') : undefined;
    if (isJsonObject(spec) && isJsonObject(names) && own(spec, 'group') === group && own(names, 'kind') === kind) {
      return textOf(own(names, 'plural'));
    }
  }
  return undefined;
}

function isTenantRole({ kind, metadata }: KubernetesObject): boolean {
  return kind === 'ClusterRole' && TENANT_ROLES.includes(metadata.name ?? '');
}

function mayWrite(role: KubernetesObject, { group, resource }: GroupResource): boolean {
  const { rules } = role as KubernetesObject & { readonly rules?: unknown };
  return (Array.isArray(rules) ? rules : []).some(
    (rule: unknown) =>
      isJsonObject(rule) &&
      includes(rule.apiGroups, [group]) &&
      includes(rule.resources, [resource]) &&
      includes(rule.verbs, WRITE),
  );
}

function includes(list: unknown, wanted: readonly string[]): boolean {
  const texts = textsOf(list);
  return texts.includes('*') || wanted.some((one) => texts.includes(one));
}
