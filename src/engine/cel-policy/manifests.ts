import { MAX_KUBERNETES_VERSION } from '../../cel/index.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject } from '../values/json-text.ts';
import { compilePolicy } from './compiled-policy.ts';
import type { CompiledPolicy } from './compiled-policy.ts';
import { problemText } from '../values/field-problem.ts';
import type { FieldProblem } from '../values/field-problem.ts';
import { labelsOf } from '../values/object-labels.ts';
import { PolicyEnvironments } from './policy-environment.ts';
import type { BindingSpec } from './policy-spec.ts';
import { readBinding, readPolicy } from './read-policy.ts';
import { isKnownClusterKind, isKnownKind } from './sources.ts';
import type { NamespaceSource, ParamSource } from './sources.ts';
import { textOf } from '../../values/index.ts';

const GROUP = 'admissionregistration.k8s.io';
const VERSIONS: Readonly<Record<string, readonly string[]>> = {
  ValidatingAdmissionPolicy: ['v1', 'v1beta1', 'v1alpha1'],
  ValidatingAdmissionPolicyBinding: ['v1', 'v1beta1', 'v1alpha1'],
  MutatingAdmissionPolicy: ['v1', 'v1beta1', 'v1alpha1'],
  MutatingAdmissionPolicyBinding: ['v1', 'v1beta1', 'v1alpha1'],
};

/** A mistake in one of several manifests. */
export interface ManifestProblem extends FieldProblem {
  /** `ValidatingAdmissionPolicy/name`. */
  readonly manifest: string;
}

export interface PolicyManifestOptions {
  /** Minor version of the API server that gets the manifests. Default: the newest known. */
  readonly kubernetesVersion?: number;
}

/** A policy with its bindings, in the order of API servers. */
export interface BoundPolicy {
  readonly name: string;
  readonly policy: CompiledPolicy;
  readonly bindings: readonly BindingSpec[];
}

/** Parsed and compiled manifests for {@link evaluateManifests}. Belongs to one thread. */
export interface LoadedManifests {
  /** Minor version of the API server that is imitated. */
  readonly kubernetesVersion: number;
  /** Nothing is evaluated unless this is empty. */
  readonly problems: readonly ManifestProblem[];
  /** Policies and bindings without effect, and the reasons. */
  readonly notes: readonly string[];
  readonly validating: readonly BoundPolicy[];
  readonly mutating: readonly BoundPolicy[];
  readonly params: ParamSource;
  readonly namespaces: NamespaceSource;
}

/** Whether a manifest is an admission policy or a binding of the API server. */
function isAdmissionPolicyManifest(json: unknown): boolean {
  const { apiVersion, kind } = isJsonObject(json) ? json : {};
  const [group, version] = typeof apiVersion === 'string' ? apiVersion.split('/') : [];
  return (
    group === GROUP &&
    version !== undefined &&
    typeof kind === 'string' &&
    Object.hasOwn(VERSIONS, kind) &&
    VERSIONS[kind]?.includes(version) === true
  );
}

/**
 * Parses and compiles manifests: policies and bindings, Namespaces, and all other objects as parameters. Never throws;
 * `problems` contains all mistakes.
 */
export function loadManifests(documents: readonly unknown[], options: PolicyManifestOptions = {}): LoadedManifests {
  return new ManifestLoader(options).load(documents);
}

class ManifestLoader {
  readonly #kubernetesVersion: number;
  readonly #environments: PolicyEnvironments;
  readonly #problems: ManifestProblem[] = [];
  readonly #notes: string[] = [];
  readonly #policies = new Map<string, CompiledPolicy>();
  readonly #bindings = new Map<string, BindingSpec>();
  readonly #objects: JsonObject[] = [];

  constructor(options: PolicyManifestOptions) {
    this.#kubernetesVersion = options.kubernetesVersion ?? MAX_KUBERNETES_VERSION;
    this.#environments = new PolicyEnvironments({
      kubernetesVersion: this.#kubernetesVersion,
      hasWholeRequest: false,
    });
  }

  load(documents: readonly unknown[]): LoadedManifests {
    for (const [index, json] of documents.entries()) {
      this.#add(json, index);
    }
    const objects = new ManifestObjects(this.#objects);
    return {
      kubernetesVersion: this.#kubernetesVersion,
      problems: this.#problems,
      notes: this.#notes,
      validating: this.#bound('validating'),
      mutating: this.#bound('mutating'),
      params: objects,
      namespaces: { get: (name) => objects.get({ apiVersion: 'v1', kind: 'Namespace' }, name, undefined) },
    };
  }

  #add(json: unknown, index: number): void {
    if (!isJsonObject(json)) {
      this.#problems.push({ manifest: `document ${index + 1}`, field: '', message: 'expected a mapping' });
      return;
    }
    if (!isAdmissionPolicyManifest(json)) {
      this.#objects.push(json);
      return;
    }
    const kind = textOf(json.kind);
    const problems: FieldProblem[] = [];
    const isBinding = kind.endsWith('Binding');
    const read = isBinding ? readBinding(json, problems) : readPolicy(json, problems);
    const policy = 'policyName' in read ? undefined : compilePolicy(read, this.#environments, problems);
    const name = read.name ?? '';
    const manifest = `${kind}/${name === '' ? `document ${index + 1}` : name}`;
    const known: ReadonlyMap<string, unknown> = isBinding ? this.#bindings : this.#policies;
    const key = keyOf(read.kind, name);
    if (known.has(key)) {
      problems.push({ field: 'metadata.name', message: `${kind} "${name}" is there twice` });
    }
    this.#problems.push(...problems.map((problem) => ({ ...problem, manifest })));
    if ('policyName' in read) {
      this.#bindings.set(key, read);
    } else if (policy !== undefined) {
      this.#policies.set(key, policy);
    }
  }

  #bound(kind: BindingSpec['kind']): BoundPolicy[] {
    const bindings = [...this.#bindings.values()].filter((binding) => binding.kind === kind).sort(byName);
    const policies = [...this.#policies.values()].filter(({ spec }) => spec.kind === kind);
    const names = new Set(policies.map(({ spec }) => spec.name));
    for (const { name, policyName } of bindings.filter((binding) => !names.has(binding.policyName))) {
      this.#notes.push(`the binding "${name}" has no effect: there is no ${kind} policy "${policyName}"`);
    }
    return policies
      .map((policy) => {
        const name = policy.spec.name ?? '';
        const own = bindings.filter((binding) => binding.policyName === name);
        if (own.length === 0) {
          this.#notes.push(`the policy "${name}" has no effect: no binding names it`);
        }
        return { name, policy, bindings: own };
      })
      .sort(byName);
  }
}

/** Objects among the manifests, as parameters. */
class ManifestObjects implements ParamSource {
  readonly #byKind = new Map<string, JsonObject[]>();

  constructor(objects: readonly JsonObject[]) {
    for (const object of objects) {
      const kind = `${textOf(object.apiVersion)}/${textOf(object.kind)}`;
      this.#byKind.set(kind, [...(this.#byKind.get(kind) ?? []), object]);
    }
  }

  get(kind: ParamKindKey, name: string, namespace: string | undefined): JsonObject | undefined {
    return this.#in(kind, namespace).find((object) => metadataText(object, 'name') === name);
  }

  list(
    kind: ParamKindKey,
    namespace: string | undefined,
    selector: Parameters<ParamSource['list']>[2],
  ): readonly JsonObject[] {
    return this.#in(kind, namespace).filter((object) => selector.matches(labelsOf(object)));
  }

  /** Kubernetes' own kinds, those of CustomResourceDefinitions among the manifests, and those of the objects themselves. */
  isServed(kind: ParamKindKey): boolean {
    return isKnownKind(kind) || this.#declaredScope(kind) !== undefined || this.#all(kind).length > 0;
  }

  /** From a CustomResourceDefinition among the manifests; otherwise from the known kinds and the objects themselves. */
  isNamespaced(kind: ParamKindKey): boolean {
    const scope = this.#declaredScope(kind);
    if (scope !== undefined) {
      return scope === 'Namespaced';
    }
    const objects = this.#all(kind);
    const isCustom = kind.apiVersion.split('/')[0]?.includes('.') === true && !kind.apiVersion.includes('.k8s.io/');
    const isElsewhere = isCustom && objects.length > 0 && objects.every((one) => metadataText(one, 'namespace') === '');
    return !isKnownClusterKind(kind) && !isElsewhere;
  }

  #declaredScope({ apiVersion, kind }: ParamKindKey): string | undefined {
    const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
    for (const definition of this.#byKind.get('apiextensions.k8s.io/v1/CustomResourceDefinition') ?? []) {
      const spec = isJsonObject(definition.spec) ? definition.spec : {};
      const names = isJsonObject(spec.names) ? spec.names : {};
      if (spec.group === group && names.kind === kind) {
        return textOf(spec.scope);
      }
    }
    return undefined;
  }

  #all({ apiVersion, kind }: ParamKindKey): readonly JsonObject[] {
    return this.#byKind.get(`${apiVersion}/${kind}`) ?? [];
  }

  /** A manifest without a namespace is in `default`, as in kubectl. */
  #in(kind: ParamKindKey, namespace: string | undefined): readonly JsonObject[] {
    const objects = this.#all(kind);
    return namespace === undefined
      ? objects
      : objects.filter((object) => (metadataText(object, 'namespace') || 'default') === namespace);
  }
}

type ParamKindKey = Parameters<ParamSource['isNamespaced']>[0];

function metadataText(object: JsonObject, key: string): string {
  const metadata = isJsonObject(object.metadata) ? object.metadata : {};
  return textOf(Object.hasOwn(metadata, key) ? metadata[key] : undefined);
}

function keyOf(kind: string, name: string): string {
  return `${kind}/${name}`;
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : Number(a.name > b.name);
}

/** A mistake with its manifest, as text. */
export function manifestProblemText(problem: ManifestProblem): string {
  return `${problem.manifest}: ${problemText(problem)}`;
}
