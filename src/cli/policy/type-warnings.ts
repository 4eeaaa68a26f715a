// Warnings about rules and expressions of policies for the kinds of Kubernetes, and of CustomResourceDefinitions among
// manifests: those of an API server with these kinds when the policy is applied.
import type { JsonObject, PolicyDefinition } from '../../engine/index.ts';
import {
  checkManifestTypes,
  checkPolicyTypes,
  describeTypeWarning,
  offlineKinds,
  type PolicyKinds,
  type TypeWarning,
} from '../../engine/type-check/index.ts';
import { subjectOfDefinition, subjectOfSpec } from '../../engine/type-check/subject/index.ts';
import {
  type AdmissionPolicySpec,
  groupVersionOf,
  isJsonObject,
  isRemovedVersion,
  POLICIES_GROUP,
  type UnservedRule,
  unservedRules,
} from '../../resources/index.ts';
import { own, textOf, textsOf, valueAt } from '../../values/index.ts';
import { fieldPathOf } from '../field-path.ts';
import type { FilePolicy } from './file-policy.ts';
import type { PlacedManifest } from './placed-manifests.ts';
import { subjectOf } from './policy-findings.ts';
import type { PolicyWarning } from './policy-warning.ts';
import { type PlaceOf, textBefore } from './source-places.ts';

/** A policy without rules, such as an entry of a policies file. */
export interface CheckedEntry {
  readonly id?: string;
  readonly definition: PolicyDefinition;
  readonly placeOf?: PlaceOf | undefined;
}

export interface CheckedPolicies {
  /** Manifests of policies of any kind, and of CustomResourceDefinitions; others are ignored. */
  readonly manifests: readonly CheckedManifest[];
  readonly entries?: readonly CheckedEntry[];
  /** Objects of requests, whose kinds stand for the rules of entries. */
  readonly objects?: readonly unknown[];
}

/** A manifest, and where its fields are if it is a policy in a file. */
type CheckedManifest = Pick<PlacedManifest, 'object'> & { readonly placeOf?: PlaceOf };

/** The warnings. Never throws for policies that are valid; mistakes in others are reported where they are loaded. */
export function typeWarnings({ manifests, entries = [], objects = [] }: CheckedPolicies): readonly PolicyWarning[] {
  const policies = manifests.filter(({ object }) => isPolicy(object));
  if (policies.length === 0 && entries.length === 0) {
    return [];
  }
  const kinds = offlineKinds(manifests.map(({ object }) => object));
  return [
    ...policies.flatMap((policy) => manifestWarnings(policy, kinds)),
    ...entries.flatMap((entry) => entryWarnings(entry, objects, kinds)),
  ];
}

/** The warnings about a policy of a file. @param beside other manifests, such as CustomResourceDefinitions */
export function filePolicyWarnings(
  policy: FilePolicy,
  beside: readonly PlacedManifest[],
  objects: readonly unknown[] = [],
): readonly PolicyWarning[] {
  const ofTypes = typeWarnings({
    manifests: [...(policy.placed ?? []), ...beside],
    entries: entriesOf(policy),
    objects,
  });
  return withTypeWarnings(policy.findings().warnings, ofTypes);
}

/** Warnings of rules, and those of types: a rule that matches in no cluster has a warning already. */
export function withTypeWarnings(
  ofRules: readonly PolicyWarning[],
  ofTypes: readonly PolicyWarning[],
): readonly PolicyWarning[] {
  const isKnown = ({ rule, policy, field }: PolicyWarning): boolean =>
    rule === 'rule-not-served' && ofRules.some((one) => one.policy === policy && one.field === field);
  return [...ofRules, ...ofTypes.filter((one) => !isKnown(one))];
}

/** The policy if it is an entry of a policies file. */
export function entriesOf({ definition, placeOf, placed }: FilePolicy): readonly CheckedEntry[] {
  return placed === undefined ? [{ id: definition.id, definition, placeOf }] : [];
}

type Rule = AdmissionPolicySpec['rules'][number];

const ADMISSION_GROUP = 'admissionregistration.k8s.io';

function isPolicy(manifest: JsonObject): boolean {
  const { group } = groupVersionOf(textOf(own(manifest, 'apiVersion')));
  const kind = textOf(own(manifest, 'kind'));
  return group === POLICIES_GROUP
    ? /AdmissionPolicy(?:Group)?$/.test(kind)
    : group === ADMISSION_GROUP && /^(?:Validating|Mutating)AdmissionPolicy$/.test(kind);
}

function manifestWarnings(manifest: CheckedManifest, kinds: PolicyKinds): readonly PolicyWarning[] {
  const { object, placeOf } = manifest;
  const policy = subjectOf(object);
  const { group } = groupVersionOf(textOf(own(object, 'apiVersion')));
  if (group === ADMISSION_GROUP) {
    return checkManifestTypes(object, kinds).warnings.map((one) => ({ policy, ...warningOf(one, placeOf) }));
  }
  const spec = specOf(object);
  return spec === undefined ? [] : specWarnings(spec, placeOf, kinds).map((one) => ({ policy, ...one }));
}

function warningOf(warning: TypeWarning, placeOf: PlaceOf | undefined): PolicyWarning {
  const { field } = warning;
  return {
    rule: 'type-check',
    field,
    message: describeTypeWarning(warning),
    ...(placeOf === undefined ? {} : { place: placeOf(fieldPathOf(field), textBefore(warning.expression, warning)) }),
  };
}

/** With the lists that the checks read; undefined for a spec that cannot be loaded. */
function specOf(manifest: JsonObject): AdmissionPolicySpec | undefined {
  const spec = own(manifest, 'spec');
  const rules = valueAt(spec, 'rules');
  const isComplete =
    isJsonObject(spec) &&
    Array.isArray(rules) &&
    (isJsonObject(spec['policies']) || typeof spec['module'] === 'string');
  if (!isComplete) {
    return undefined;
  }
  const read = rules.filter(isJsonObject).map((rule) => ({
    ...rule,
    apiGroups: textsOf(rule['apiGroups']),
    apiVersions: textsOf(rule['apiVersions']),
    resources: textsOf(rule['resources']),
  }));
  return { ...spec, rules: read } as unknown as AdmissionPolicySpec;
}

function specWarnings(
  spec: AdmissionPolicySpec,
  placeOf: PlaceOf | undefined,
  kinds: PolicyKinds,
): readonly PolicyWarning[] {
  return [
    ...removedRules(spec.rules, kinds).map((one): PolicyWarning => ({
      rule: 'rule-not-served',
      ...one,
      ...(placeOf === undefined ? {} : { place: placeOf(fieldPathOf(one.field)) }),
    })),
    ...checkPolicyTypes(subjectOfSpec(spec), kinds).warnings.map((one) => warningOf(one, placeOf)),
  ];
}

const WORDS = { has: 'Kubernetes has', lacks: 'Kubernetes no longer serves' };

/** Rules for versions that Kubernetes had once. Rules that match no request in any cluster have findings of their own. */
function removedRules(rules: readonly Rule[], { served }: PolicyKinds): readonly UnservedRule[] {
  return rules.flatMap((rule, index) =>
    isForRemoved(rule)
      ? unservedRules([rule], served, WORDS).map(({ field, message }) => ({
          field: field.replace('spec.rules[0]', `spec.rules[${index}]`),
          message,
        }))
      : [],
  );
}

function isForRemoved({ apiGroups = [], apiVersions, resources }: Rule): boolean {
  const names = resources.map((text) => text.split('/', 1)[0] ?? '');
  return (
    [apiGroups, apiVersions, names].every((list) => list.length > 0) &&
    apiGroups.every((group) =>
      apiVersions.every((version) => names.every((name) => isRemovedVersion(group, version, name))),
    )
  );
}

function entryWarnings(
  { id, definition, placeOf }: CheckedEntry,
  objects: readonly unknown[],
  kinds: PolicyKinds,
): readonly PolicyWarning[] {
  const rules = objects.filter(isJsonObject).flatMap((object) => {
    const { group, version } = groupVersionOf(textOf(own(object, 'apiVersion')));
    const kind = textOf(own(object, 'kind'));
    const served = kinds.served.find((one) => one.group === group && one.version === version && one.kind === kind);
    return [{ apiGroups: [group], apiVersions: [version], resources: [served?.resource ?? '*'] }];
  });
  return checkPolicyTypes(subjectOfDefinition(definition, rules), kinds).warnings.map((one) => ({
    ...(id === undefined ? {} : { policy: id }),
    ...warningOf(one, placeOf),
  }));
}
