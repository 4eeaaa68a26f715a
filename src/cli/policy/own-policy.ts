// A manifest of one of our kinds of policies: validated as by an API server, with the requests that it matches.
import { policyEntry } from '../../engine/definition/index.ts';
import {
  type KeyPath,
  fieldPathText,
  type JsonObject,
  loadReviewMatcher,
  type LookupResult,
  type ObjectLookup,
  type PolicyDefinition,
  readPolicyDefinition,
} from '../../engine/index.ts';
import {
  ADMISSION_POLICIES,
  ADMISSION_POLICY_GROUPS,
  type AdmissionPolicyObject,
  apiVersionOf,
  CLUSTER_ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  DEFAULT_EXEMPT_NAMESPACES,
  type FieldError,
  type KubernetesObject,
  type MutableObject,
  NAMESPACE_NAME_LABEL,
  outsideExemptNamespaces,
  type OwnKind,
  POLICIES_GROUP,
  policyId,
  policyMatch,
} from '../../resources/index.ts';
import { ObjectSchema } from '../../resources/validation/index.ts';
import { own, textOf, valueAt } from '../../values/index.ts';
import { CliError } from '../errors.ts';
import { fieldPathOf } from '../field-path.ts';
import { PRODUCT_NAMESPACE } from '../product-namespace.ts';
import type { FilePolicy } from './file-policy.ts';
import { placedMessage, type PlacedManifest } from './placed-manifests.ts';
import { unknownFieldHint } from './unknown-field-hint.ts';
import { once, ownFindings } from './policy-findings.ts';
import { settingsFilter } from './settings-filter.ts';

const KINDS: readonly OwnKind[] = [
  CLUSTER_ADMISSION_POLICIES,
  ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  ADMISSION_POLICY_GROUPS,
];

/** The path of errors about an object as a whole, as in API servers. */
const NO_FIELD = '<nil>';

/** The namespace of namespaced policies that name none, as for kubectl. */
const DEFAULT_NAMESPACE = 'default';

export interface OwnPolicyOptions {
  /** Patterns of host capabilities that policies of namespaces may use, as their PolicyServer grants. Default: none. */
  readonly tenantCapabilities?: readonly string[];
}

/** Whether a manifest is of one of our kinds of policies, in any version. */
export function isOwnPolicy(manifest: JsonObject): boolean {
  return textOf(own(manifest, 'apiVersion')).startsWith(`${POLICIES_GROUP}/`) && kindOf(manifest) !== undefined;
}

function kindOf(manifest: JsonObject): OwnKind | undefined {
  const kind = own(manifest, 'kind');
  return KINDS.find((one) => one.kind === kind);
}

/** Schemas of our kinds, which are compiled on first use. */
const schemas = new Map<OwnKind, ObjectSchema>();

/**
 * The policy of a manifest.
 * @param objects the other manifests
 * @throws CliError with all mistakes and their places
 */
export function ownPolicy(
  placed: PlacedManifest,
  objects: readonly JsonObject[],
  { tenantCapabilities = [] }: OwnPolicyOptions = {},
): FilePolicy {
  const ownKind = kindOf(placed.object);
  if (ownKind === undefined) {
    throw new Error('expected a manifest that isOwnPolicy knows');
  }
  const policy = validatedManifest(placed, ownKind) as AdmissionPolicyObject;
  const { kind, metadata } = policy;
  const { name = '', namespace } = metadata;
  const id = policyId(policy);
  const definition = definitionOf(policy, id, placed, namespace === undefined ? ['*'] : tenantCapabilities);
  const match = policyMatch(policy, { productNamespace: PRODUCT_NAMESPACE, ownWebhook: false });
  const isOfCluster = namespace === undefined;
  const Matcher = loadReviewMatcher();
  const matcher = new Matcher(
    isOfCluster
      ? { ...match, namespaceSelector: outsideExemptNamespaces(match.namespaceSelector, DEFAULT_EXEMPT_NAMESPACES) }
      : match,
  );
  const [, short = ''] = id.split('.', 2);
  const lower = kind?.toLowerCase() ?? '';
  const { source, positionOf } = placed;
  const lookup = namespacesAmong(objects);
  const filter = settingsFilter(definition, objects);
  return {
    name: isOfCluster ? `${short}/${name}` : `${short}/${namespace}/${name}`,
    aliases: [name, `${short}/${name}`, `${lower}/${name}`, id],
    ...(kind === undefined ? {} : { kind }),
    file: source.name,
    line: positionOf().line,
    folder: source.folder,
    placed: [placed],
    definition,
    findings: once(() => ownFindings(placed, ownKind, objects)),
    manifest: policy as JsonObject,
    objects,
    match: (review) => {
      const matched = matcher.match(review, lookup);
      return 'isMatch' in matched && matched.isMatch ? (filter(review) ?? matched) : matched;
    },
  };
}

/** A manifest of one of our kinds with defaults. @throws CliError with all mistakes */
export function validatedManifest(placed: PlacedManifest, kind: OwnKind): KubernetesObject {
  const { object } = placed;
  const name = textOf(valueAt(object, 'metadata', 'name'));
  const where = `${textOf(own(object, 'kind'))} ${name || 'without a name'}`;
  const problem = (path: KeyPath, message: string): string => placedMessage(placed, path, `${where}: ${message}`);
  const apiVersion = textOf(own(object, 'apiVersion'));
  if (apiVersion !== apiVersionOf(kind)) {
    throw new CliError(problem(['apiVersion'], `apiVersion: expected ${apiVersionOf(kind)}, got ${apiVersion}`));
  }
  if (name === '') {
    throw new CliError(problem(['metadata'], 'metadata.name: expected a name, got none'));
  }
  const namespace = textOf(valueAt(object, 'metadata', 'namespace')) || DEFAULT_NAMESPACE;
  const spec = own(object, 'spec');
  const copy: MutableObject = {
    apiVersion,
    kind: kind.kind,
    metadata: { name, ...(kind.namespaced ? { namespace } : {}) },
    ...(spec === undefined ? {} : { spec: structuredClone(spec) }),
  };
  const schema = schemas.get(kind) ?? new ObjectSchema(kind.schema());
  schemas.set(kind, schema);
  const unknown = schema.prune(copy);
  schema.applyDefaults(copy);
  const problems = [
    ...unknown.map((field) => problem(fieldPathOf(field), `${field}: unknown field${unknownFieldHint(field, kind)}`)),
    ...fieldErrors(schema.validate(copy)).map(({ field, message }) =>
      problem(fieldPathOf(field), `${field}: ${message}`),
    ),
  ];
  if (problems.length > 0) {
    throw new CliError(problems.join('\n'));
  }
  return copy;
}

/** Without the error of no field, which says that others come first. */
function fieldErrors(errors: readonly FieldError[]): readonly FieldError[] {
  const ofFields = errors.filter(({ field }) => field !== NO_FIELD);
  return ofFields.length === 0 ? errors : ofFields;
}

function definitionOf(
  policy: AdmissionPolicyObject,
  id: string,
  placed: PlacedManifest,
  hostCapabilities: readonly string[],
): PolicyDefinition {
  const { definition, faults = [] } = readPolicyDefinition(id, policyEntry(policy, { hostCapabilities }));
  if (definition === undefined || faults.length > 0) {
    const where = `${policy.kind ?? ''} ${policy.metadata.name ?? ''}`;
    throw new CliError(
      faults
        .map(({ path, message }) => {
          const field = ['spec', ...path];
          return placedMessage(placed, field, `${where}: ${fieldPathText(field)}: ${message}`);
        })
        .join('\n'),
    );
  }
  return definition;
}

/** Finds namespaces among manifests, with the label that API servers set. The others are unknown. */
function namespacesAmong(objects: readonly JsonObject[]): ObjectLookup {
  return {
    find: ({ kind, name }): LookupResult => {
      const found = objects.find(
        (one) =>
          kind === 'Namespace' &&
          own(one, 'apiVersion') === 'v1' &&
          own(one, 'kind') === kind &&
          valueAt(one, 'metadata', 'name') === name,
      );
      return found === undefined ? { state: 'unknown' } : { state: 'found', object: withNameLabel(found, name) };
    },
  };
}

function withNameLabel(namespace: JsonObject, name: string): JsonObject {
  const metadata = { ...(own(namespace, 'metadata') as JsonObject) };
  const labels = { ...(own(metadata, 'labels') as JsonObject | undefined), [NAMESPACE_NAME_LABEL]: name };
  return { ...namespace, metadata: { ...metadata, labels } };
}
