import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { type ContextAwareResource, LAST_APPLIED_ANNOTATION, POLICIES_GROUP } from '../../resources/index.ts';
import { own, textOf, valueAt } from '../../values/index.ts';
import { type BoundPolicy, loadManifests, type ManifestProblem } from './manifests.ts';
import { PolicyEnvironments } from './policy-environment.ts';
import type { BindingSpec } from './policy-spec.ts';
import { parseSettings } from './settings-policy.ts';

export interface ImportOptions {
  /** The module of the policies, which takes settings of `builtin:cel`. Default: `builtin:cel`. */
  readonly module?: string;
}

/** What became of manifests. */
export interface ImportedPolicies {
  /** ClusterAdmissionPolicies, one for each binding. Empty when there are problems. */
  readonly policies: readonly JsonObject[];
  /** What an API server would reject, and what a ClusterAdmissionPolicy cannot express. */
  readonly problems: readonly ManifestProblem[];
  /** What a ClusterAdmissionPolicy does differently. */
  readonly notes: readonly string[];
}

type Kind = BindingSpec['kind'];

const GROUP = 'admissionregistration.k8s.io';
/** Names of the manifests by the kind of a policy. */
const KINDS: Readonly<Record<Kind, string>> = {
  validating: 'ValidatingAdmissionPolicy',
  mutating: 'MutatingAdmissionPolicy',
};

/**
 * Converts ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings to ClusterAdmissionPolicies of
 * `builtin:cel`. Other manifests are ignored. Never throws.
 */
export function importPolicies(manifests: readonly JsonObject[], options: ImportOptions = {}): ImportedPolicies {
  const { problems, validating, mutating } = loadManifests(manifests);
  if (problems.length > 0) {
    return { policies: [], problems, notes: [] };
  }
  const importer = new Importer(manifests, options.module ?? 'builtin:cel');
  return importer.import([...validating, ...mutating]);
}

class Importer {
  /** By `Kind/name`. */
  readonly #manifests: ReadonlyMap<string, JsonObject>;
  readonly #module: string;
  readonly #environments = new PolicyEnvironments({ hasWholeRequest: true });
  readonly #policies = new Map<string, JsonObject>();
  readonly #problems: ManifestProblem[] = [];
  readonly #notes: string[] = [];

  constructor(manifests: readonly JsonObject[], module: string) {
    this.#manifests = new Map(
      manifests
        .filter((one) => textOf(own(one, 'apiVersion')).startsWith(`${GROUP}/`))
        .map((one) => [`${textOf(own(one, 'kind'))}/${textOf(valueAt(one, 'metadata', 'name'))}`, one]),
    );
    this.#module = module;
  }

  import(bound: readonly BoundPolicy[]): ImportedPolicies {
    for (const { name, policy, bindings } of bound) {
      const { kind } = policy.spec;
      const manifest = this.#find(KINDS[kind], name);
      const label = `${KINDS[kind]}/${name}`;
      if (bindings.length === 0) {
        this.#notes.push(
          `${label}: no binding names it, so that an API server does not evaluate it: this policy applies`,
        );
        this.#add(manifest, undefined, { name, label, kind });
      }
      for (const binding of bindings) {
        const one = this.#find(`${KINDS[kind]}Binding`, binding.name);
        this.#add(manifest, one, { name: bindings.length === 1 ? name : binding.name, label, kind });
      }
    }
    this.#noteUnused();
    const policies = this.#problems.length === 0 ? [...this.#policies.values()] : [];
    return { policies, problems: this.#problems, notes: this.#notes };
  }

  /** Notes bindings of policies that are not there. */
  #noteUnused(): void {
    for (const [label, manifest] of this.#manifests) {
      const [kind = ''] = label.split('/', 1);
      const policyName = textOf(valueAt(manifest, 'spec', 'policyName'));
      if (kind.endsWith('Binding') && !this.#manifests.has(`${kind.slice(0, -'Binding'.length)}/${policyName}`)) {
        this.#notes.push(`${label}: there is no policy "${policyName}"`);
      }
    }
  }

  #find(kind: string, name: string): JsonObject {
    return this.#manifests.get(`${kind}/${name}`) ?? {};
  }

  #add(
    policy: JsonObject,
    binding: JsonObject | undefined,
    { name, label, kind }: { readonly name: string; readonly label: string; readonly kind: Kind },
  ): void {
    const report = (field: string, message: string): void => {
      this.#problems.push({ manifest: label, field, message });
    };
    if (this.#policies.has(name)) {
      report('metadata.name', `two policies would be named "${name}": rename one, or its binding`);
    }
    const { matchConstraints, ...rest } = objectAt(policy, 'spec');
    const bindingSpec = binding === undefined ? {} : objectAt(binding, 'spec');
    const match = new CombinedMatch(objectOf(matchConstraints), objectOf(bindingSpec['matchResources']));
    if (match.hasNamesTwice) {
      report(
        'spec.matchConstraints.resourceRules',
        'resourceNames of the policy and of its binding cannot be combined',
      );
    }
    const settings: JsonObject = {
      ...withoutDefaults(rest),
      ...(match.settings === undefined ? {} : { matchConstraints: match.settings }),
      ...present({ paramRef: bindingSpec['paramRef'] }),
    };
    const parsed = parseSettings(settings, this.#environments);
    for (const { field, message } of parsed.problems ?? []) {
      report(`spec.${field}`, message);
    }
    const reads = (parsed.policy?.needs ?? []).flatMap((need) => (need.right === 'read' ? [need.resource] : []));
    const monitors = kind === 'validating' && this.#monitors(bindingSpec['validationActions'], label);
    this.#policies.set(name, {
      apiVersion: `${POLICIES_GROUP}/v1`,
      kind: 'ClusterAdmissionPolicy',
      metadata: { name, ...keptMetadata(policy) },
      spec: {
        module: this.#module,
        mutating: kind === 'mutating',
        ...(monitors ? { mode: 'monitor' } : {}),
        ...match.spec,
        ...(rest['failurePolicy'] === 'Ignore' ? { failurePolicy: 'Ignore' } : {}),
        ...contextAwareResources(reads),
        settings,
      },
    });
  }

  /** Whether the policy only reports; notes which actions have no counterpart. */
  #monitors(actions: JsonValue | undefined, label: string): boolean {
    const known = Array.isArray(actions) ? actions : ['Deny'];
    const isDenying = known.includes('Deny');
    if (known.includes('Warn')) {
      this.#notes.push(
        `${label}: validationActions: Warn: users get no warning; mode: monitor counts and logs what would be rejected`,
      );
    }
    if (known.includes('Audit')) {
      this.#notes.push(
        `${label}: validationActions: Audit: the audit log gets no failures${isDenying ? '' : '; mode: monitor counts and logs them'}`,
      );
    }
    return !isDenying;
  }
}

/** The requests that a policy and its binding both match, as fields of a spec, and the rest as fields of settings. */
class CombinedMatch {
  /** `rules`, selectors, `matchPolicy`. */
  readonly spec: JsonObject;
  /** `matchConstraints`, for what a spec cannot say. */
  readonly settings: JsonObject | undefined;
  /** Whether neither list of rules can be one of a spec. */
  readonly hasNamesTwice: boolean;

  constructor(constraints: JsonObject, resources: JsonObject) {
    const isNamed = rulesAt(constraints, 'resourceRules').some(hasNames);
    const isNarrowed = rulesAt(resources, 'resourceRules').length > 0;
    // The rules of a spec have no names of objects: those that have go into the settings.
    const outer = isNamed && isNarrowed ? resources : constraints;
    const inner = isNamed ? constraints : resources;
    this.hasNamesTwice = rulesAt(outer, 'resourceRules').some(hasNames) && outer !== inner;
    const [selector, innerSelector] = [constraints, resources].map((one) => selectorAt(one, 'objectSelector'));
    this.spec = {
      rules: rulesAt(outer, 'resourceRules').map(withoutNames),
      ...matchPolicyOf(outer),
      ...present({
        namespaceSelector: bothSelectors(
          selectorAt(constraints, 'namespaceSelector'),
          selectorAt(resources, 'namespaceSelector'),
        ),
        objectSelector: selector ?? innerSelector,
      }),
    };
    const rules = rulesAt(inner, 'resourceRules');
    const settings = withoutDefaults({
      ...(rules.length > 0 ? matchPolicyOf(inner) : {}),
      resourceRules: rules,
      excludeResourceRules: [constraints, resources].flatMap((one) => rulesAt(one, 'excludeResourceRules')),
      // An update matches by the object before or after it: two selectors cannot become one.
      objectSelector: selector === undefined ? {} : (innerSelector ?? {}),
    });
    this.settings = Object.keys(settings).length === 0 ? undefined : settings;
  }
}

/** `matchPolicy`, unless it is the default. */
function matchPolicyOf(match: JsonObject): JsonObject {
  return match['matchPolicy'] === 'Exact' ? { matchPolicy: 'Exact' } : {};
}

function hasNames(rule: JsonObject): boolean {
  return Array.isArray(rule['resourceNames']) && rule['resourceNames'].length > 0;
}

function withoutNames({ apiGroups, apiVersions, resources, operations, scope }: JsonObject): JsonObject {
  return present({ apiGroups, apiVersions, resources, operations, scope: scope === '*' ? undefined : scope });
}

function rulesAt(match: JsonObject, key: string): JsonObject[] {
  const rules = match[key];
  return Array.isArray(rules) ? rules.filter(isJsonObject) : [];
}

/** The selector at a key; undefined when it matches everything. */
function selectorAt(match: JsonObject, key: string): JsonObject | undefined {
  const selector = withoutDefaults(objectOf(match[key]));
  return Object.keys(selector).length === 0 ? undefined : selector;
}

/** A selector of what both match. */
function bothSelectors(one: JsonObject | undefined, other: JsonObject | undefined): JsonObject | undefined {
  if (one === undefined || other === undefined) {
    return one ?? other;
  }
  const labels = objectOf(one['matchLabels']);
  // A label that both have may have two values: then nothing matches.
  const expressions = Object.entries(objectOf(other['matchLabels'])).map(([key, value]) => ({
    key,
    operator: 'In',
    values: [value],
  }));
  const all = [...listOf(one['matchExpressions']), ...listOf(other['matchExpressions']), ...expressions];
  return {
    ...(Object.keys(labels).length === 0 ? {} : { matchLabels: labels }),
    ...(all.length === 0 ? {} : { matchExpressions: all }),
  };
}

/** Labels and annotations, without what kubectl remembers there. */
function keptMetadata(policy: JsonObject): JsonObject {
  const metadata = objectAt(policy, 'metadata');
  const { [LAST_APPLIED_ANNOTATION]: _, ...annotations } = objectOf(metadata['annotations']);
  return withoutDefaults({ labels: objectOf(metadata['labels']), annotations });
}

function contextAwareResources(reads: readonly ContextAwareResource[]): JsonObject {
  const byKey = new Map(reads.map(({ apiVersion, kind }) => [`${apiVersion}/${kind}`, { apiVersion, kind }]));
  return byKey.size === 0 ? {} : { contextAwareResources: [...byKey.values()] };
}

/** Without what is empty, and without `failurePolicy: Fail`. */
function withoutDefaults(fields: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter(
      ([key, value]) =>
        value !== null &&
        !(Array.isArray(value) && value.length === 0) &&
        !(isJsonObject(value) && Object.keys(value).length === 0) &&
        !(key === 'failurePolicy' && value === 'Fail'),
    ),
  );
}

function present(fields: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter((entry): entry is [string, JsonValue] => entry[1] !== undefined && entry[1] !== null),
  );
}

function objectAt(value: JsonObject, key: string): JsonObject {
  return objectOf(own(value, key));
}

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}
