// The objects of an object template: by its own name and namespace, or by selectors.
import { groupVersionOf, labelSelector, SelectorError } from '../../resources/index.ts';
import type { KubernetesObject, ResourceType, Selector } from '../../resources/index.ts';
import { CodedError, isJsonObject, own, textOf } from '../../values/index.ts';
import type { JsonObject } from '../../values/index.ts';
import type { ObjectResult } from './compliance-message.ts';
import { REASONS } from './compliance-reasons.ts';
import { ObjectReadError } from './object-source.ts';
import type { ObjectSource } from './object-source.ts';
import { complianceTypeOf } from './object-template.ts';
import type { ObjectTemplate } from './object-template.ts';
import { isEmptySelector, NamespaceSelectorError, selectNamespaces } from './select-namespaces.ts';
import type { NamespaceSelector, TerminatingInclusion } from './select-namespaces.ts';

/** Maximum number of objects of one template: each is compared in every evaluation. */
const MAX_DESIRED_OBJECTS = 10_000;

/** Maximum number of objects of one policy: each has a plan of some kilobytes, and its status lists some thousands. */
export const MAX_POLICY_OBJECTS = 20_000;

/** What a definition may refer to while its functions are resolved. */
export interface DefinitionContext {
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  /** Empty if the object has no name yet. */
  readonly name: string;
  /** The live object, if it has a name and exists. */
  readonly live: () => KubernetesObject | undefined;
  /** Whether the kind is not served, so that its scope is unknown: all variables are there. Default: false. */
  readonly isUnserved?: boolean;
}

/** A definition without template functions. */
export type ResolvedDefinition =
  | {
      readonly type: 'resolved';
      readonly definition: JsonObject;
      /** Whether a function read secrets: then differences are not recorded. */
      readonly isSensitive: boolean;
    }
  /** The definition called `skipObject`. */
  | { readonly type: 'skipped' }
  | { readonly type: 'failed'; readonly message: string };

/** Resolves the functions of a template's definition for one object. */
export type DefinitionResolver = (template: ObjectTemplate, context: DefinitionContext) => ResolvedDefinition;

/** The parts of a policy that select objects. */
export interface ObjectScope {
  readonly policyName: string;
  readonly namespaceSelector?: NamespaceSelector;
  /** The controller's setting. Default: IfMatch. */
  readonly terminatingInclusion?: TerminatingInclusion;
  /** Whether all fields of the templates were made from Secrets: messages have nothing of them but names of objects. */
  readonly isSensitive?: boolean;
  /** Absent: definitions have no template functions. */
  readonly resolve?: DefinitionResolver;
}

/** One object as it should be, or with the name empty any object of the namespace. */
export interface DesiredObject {
  readonly namespace: string;
  readonly name: string;
  readonly definition: ObjectDefinition;
  readonly isSensitive: boolean;
}

/** A definition with its place: metadata has the name and the namespace, if there are any. */
export type ObjectDefinition = JsonObject & {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: JsonObject;
};

/** The objects of a template, or one result for the whole template. */
export type DesiredObjects =
  | { readonly type: 'objects'; readonly resource: ResourceType; readonly objects: readonly DesiredObject[] }
  | { readonly type: 'result'; readonly resource: string; readonly result: ObjectResult };

/** In place of a reason that may quote what a template read in a Secret. */
export const REDACTED_REASON = 'the reason is redacted, because the template reads Secrets';

/** Determines the objects of the template at an index. */
export function desiredObjects(
  template: ObjectTemplate,
  index: number,
  scope: ObjectScope,
  source: ObjectSource,
): DesiredObjects {
  try {
    return new TemplateObjects(template, index, scope, source).determine();
  } catch (error) {
    if (error instanceof TemplateFailure) {
      const message = scope.isSensitive === true ? REDACTED_REASON : error.message;
      return { type: 'result', resource: '', result: templateResult(false, error.code, message) };
    }
    throw error;
  }
}

/** Why no object of a template can be evaluated: the code is the reason of the condition. */
class TemplateFailure extends CodedError<string> {
  override readonly name = 'TemplateFailure';
}

class TemplateObjects {
  readonly #template: ObjectTemplate;
  readonly #index: number;
  readonly #scope: ObjectScope;
  readonly #source: ObjectSource;
  readonly #apiVersion: string;
  readonly #kind: string;
  /** Name and namespace of the definition, except when template functions determine them. */
  readonly #name: string;
  readonly #namespace: string;
  readonly #hasTemplatedNamespace: boolean;

  constructor(template: ObjectTemplate, index: number, scope: ObjectScope, source: ObjectSource) {
    this.#template = template;
    this.#index = index;
    this.#scope = scope;
    this.#source = source;
    const { objectDefinition } = template;
    this.#apiVersion = textOf(own(objectDefinition, 'apiVersion'));
    this.#kind = textOf(own(objectDefinition, 'kind')).trim();
    const namespace = metadataText(objectDefinition, 'namespace');
    const name = metadataText(objectDefinition, 'name');
    this.#hasTemplatedNamespace = this.#isTemplated(namespace);
    this.#namespace = this.#hasTemplatedNamespace ? '' : namespace;
    this.#name = this.#isTemplated(name) ? '' : name;
  }

  determine(): DesiredObjects {
    checkMetadata(this.#template.objectDefinition);
    const resource = this.#resource();
    if (resource === undefined) {
      return this.#unserved();
    }
    const objects: DesiredObject[] = [];
    let isSkipped = false;
    for (const { namespace, name } of this.#places(resource)) {
      const object = this.#resolve(resource, namespace, name);
      isSkipped ||= object === undefined;
      objects.push(...(object === undefined ? [] : [object]));
    }
    return objects.length === 0
      ? { type: 'result', resource: resource.resource, result: templateResult(true, '', this.#nothing(isSkipped)) }
      : { type: 'objects', resource, objects };
  }

  /** The kind; undefined if it is not served. */
  #resource(): ResourceType | undefined {
    if (this.#kind === '' || groupVersionOf(this.#apiVersion).version === '') {
      const place = `on the object template at index ${this.#index} in policy ${this.#scope.policyName}`;
      throw failure(REASONS.invalidDefinition, `The kind and apiVersion fields are required ${place}`);
    }
    return this.#source.kind(this.#apiVersion, this.#kind);
  }

  /** A kind that is not served is a violation, unless the definition skips its objects: it is asked first. */
  #unserved(): DesiredObjects {
    if (this.#skipsUnserved()) {
      const isSkipped = !this.#isSelecting;
      return { type: 'result', resource: '', result: templateResult(true, '', this.#nothing(isSkipped)) };
    }
    const what = `kind ${this.#kind} in API version ${this.#apiVersion}`;
    const message = `couldn't find mapping resource with ${what}, please check if you have CRD deployed`;
    throw failure(REASONS.unknownKind, message);
  }

  /** Whether all objects are skipped: without a namespace, or in all of the namespaces, because the scope is not known. */
  #skipsUnserved(): boolean {
    const { resolve } = this.#scope;
    if (resolve === undefined || !JSON.stringify(this.#template.objectDefinition).includes('skipObject')) {
      return false;
    }
    // No object of such a kind can be selected, so that the template is about none.
    if (this.#isSelecting) {
      return true;
    }
    const isSkipped = (namespace: string): boolean => {
      const place = { namespace, name: this.#name, isUnserved: true, live: () => undefined };
      return resolve(this.#template, place).type === 'skipped';
    };
    const selected = this.#namespace === '' ? bounded(this.#selectNamespaces()) : [];
    return isSkipped(this.#namespace) || (selected.length > 0 && selected.every(isSkipped));
  }

  /** Where the objects are: names are empty where the template gives none. */
  #places(resource: ResourceType): readonly { readonly namespace: string; readonly name: string }[] {
    const namespaces = this.#namespaces(resource);
    const selector = this.#selector();
    if (selector === undefined) {
      return bounded(namespaces.map((namespace) => ({ namespace, name: this.#name })));
    }
    return bounded(
      namespaces.flatMap((namespace) =>
        this.#selected(resource, namespace, selector).map((name) => ({ namespace, name })),
      ),
    );
  }

  #namespaces(resource: ResourceType): readonly string[] {
    if (!resource.namespaced) {
      return [''];
    }
    if (this.#namespace !== '') {
      return [this.#namespace];
    }
    const selected = this.#selectNamespaces();
    if (selected.length > 0) {
      return selected;
    }
    if (this.#hasTemplatedNamespace) {
      return [''];
    }
    const message = 'has no namespace specified from the policy namespaceSelector nor the object metadata';
    throw failure(REASONS.noNamespace, `${this.#namespaced()} ${message}`);
  }

  #selectNamespaces(): readonly string[] {
    const { namespaceSelector = {}, terminatingInclusion } = this.#scope;
    try {
      return isEmptySelector(namespaceSelector)
        ? []
        : selectNamespaces(namespaceSelector, this.#source.namespaces(), terminatingInclusion);
    } catch (error) {
      if (error instanceof NamespaceSelectorError || error instanceof ObjectReadError) {
        const what = 'Error filtering namespaces with provided namespaceSelector';
        throw failure(REASONS.namespaceSelector, `${what}: ${error.message}`);
      }
      throw error;
    }
  }

  /** Whether the objectSelector gives the names, because the template has none. */
  get #isSelecting(): boolean {
    return this.#template.objectSelector !== undefined && this.#name === '';
  }

  #selector(): Selector | undefined {
    const { objectSelector } = this.#template;
    if (!this.#isSelecting) {
      return undefined;
    }
    try {
      return labelSelector(objectSelector);
    } catch (error) {
      if (error instanceof SelectorError) {
        const what = `Error parsing provided objectSelector in the object-template at index [${this.#index}]`;
        throw failure(REASONS.objectSelector, `${what}: ${error.message}`);
      }
      throw error;
    }
  }

  #selected(resource: ResourceType, namespace: string, selector: Selector): readonly string[] {
    try {
      return this.#source.names(resource, namespace, selector);
    } catch (error) {
      if (error instanceof ObjectReadError) {
        const what = `Error listing resources with provided objectSelector in the object-template at index [${this.#index}]`;
        throw failure(REASONS.objectSelector, `${what}: ${error.message}`);
      }
      throw error;
    }
  }

  /** The object at a place; undefined if it is skipped. */
  #resolve(resource: ResourceType, namespace: string, name: string): DesiredObject | undefined {
    const { resolve } = this.#scope;
    const { objectDefinition } = this.#template;
    const live = (): KubernetesObject | undefined => this.#live(resource, namespace, name);
    const resolved: ResolvedDefinition =
      resolve === undefined
        ? { type: 'resolved', definition: objectDefinition, isSensitive: false }
        : resolve(this.#template, { namespace, name, live });
    switch (resolved.type) {
      case 'skipped':
        return undefined;
      case 'failed':
        throw failure(REASONS.templateFailed, resolved.message);
      case 'resolved':
        return this.#placed(resource, resolved, namespace, name);
      default:
        return resolved satisfies never;
    }
  }

  /** An object that cannot be read does not exist for definitions; the error is reported when it is compared. */
  #live(resource: ResourceType, namespace: string, name: string): KubernetesObject | undefined {
    try {
      return name === '' ? undefined : this.#source.get(resource, namespace, name);
    } catch (error) {
      if (error instanceof ObjectReadError) {
        return undefined;
      }
      throw error;
    }
  }

  #placed(
    resource: ResourceType,
    { definition, isSensitive }: Extract<ResolvedDefinition, { type: 'resolved' }>,
    namespace: string,
    name: string,
  ): DesiredObject {
    checkMetadata(definition);
    const ownNamespace = metadataText(definition, 'namespace') || namespace;
    const actual = {
      // A cluster-scoped object has no namespace, whatever its definition says.
      namespace: resource.namespaced ? ownNamespace : '',
      name: metadataText(definition, 'name') || name,
    };
    this.#checkPlace(resource, actual, namespace, name);
    return { ...actual, definition: this.#located(definition, actual), isSensitive };
  }

  #located(
    definition: JsonObject,
    { namespace, name }: { readonly namespace: string; readonly name: string },
  ): ObjectDefinition {
    const given = own(definition, 'metadata');
    const { name: _name, namespace: _namespace, ...others } = isJsonObject(given) ? given : {};
    const metadata = { ...others, ...(name === '' ? {} : { name }), ...(namespace === '' ? {} : { namespace }) };
    return { ...definition, apiVersion: this.#apiVersion, kind: this.#kind, metadata };
  }

  #checkPlace(
    resource: ResourceType,
    actual: { readonly namespace: string; readonly name: string },
    namespace: string,
    name: string,
  ): void {
    const after = 'after template resolution';
    const isSelected = resource.namespaced && !isEmptySelector(this.#scope.namespaceSelector ?? {});
    if (isSelected && actual.namespace !== namespace) {
      const result = 'must match the result from the namespace selector';
      throw failure(REASONS.templateFailed, `The object definition's namespace ${result} ${after}`);
    }
    if (resource.namespaced && actual.namespace === '') {
      throw failure(REASONS.templateFailed, `${this.#namespaced()} has no namespace specified ${after}`);
    }
    if (this.#isSelecting && actual.name !== name) {
      const result = 'must match the result from the object selector';
      throw failure(REASONS.templateFailed, `The object definition's name ${result} ${after}`);
    }
  }

  #nothing(isSkipped: boolean): string {
    const how = isSkipped
      ? 'skipped by the `skipObject` template function'
      : `matched from the ${this.#template.objectSelector === undefined ? 'objectDefinition metadata' : 'policy objectSelector'}`;
    const kind = this.#scope.isSensitive === true ? '' : ` of kind ${this.#kind}`;
    return `${isSkipped ? 'All' : 'No'} objects${kind} were ${how}`;
  }

  #namespaced(): string {
    return `namespaced object${this.#name === '' ? '' : ` ${this.#name}`} of kind ${this.#kind}`;
  }

  #isTemplated(text: string): boolean {
    return this.#scope.resolve !== undefined && text.includes('{{');
  }
}

/** A result of a template as a whole. */
export function templateResult(isCompliant: boolean, reason: string, message: string): ObjectResult {
  return { namespace: '', names: [], isCompliant, reason, message };
}

/** Whether a template selects objects to delete by what they look like, too: without a name, but with a selector. */
export function isNarrowed(template: ObjectTemplate): boolean {
  return (
    complianceTypeOf(template.complianceType) === 'mustnothave' &&
    template.objectSelector !== undefined &&
    metadataText(template.objectDefinition, 'name') === ''
  );
}

function bounded<T>(places: readonly T[]): readonly T[] {
  if (places.length > MAX_DESIRED_OBJECTS) {
    const message = `expected selectors to match at most ${MAX_DESIRED_OBJECTS} objects, got ${places.length}`;
    throw failure(REASONS.objectSelector, message);
  }
  return places;
}

/** Refuses a name such as 10, which would otherwise count as none: then the template would be about any object. */
function checkMetadata(definition: JsonObject): void {
  const metadata = own(definition, 'metadata') ?? {};
  const fields = isJsonObject(metadata) ? [own(metadata, 'name'), own(metadata, 'namespace')] : [metadata];
  if (fields.some((value) => (value ?? '') !== '' && typeof value !== 'string')) {
    const what = 'expected the name and the namespace in its metadata to be strings';
    throw failure(REASONS.invalidDefinition, `Error parsing the namespace from the object definition: ${what}`);
  }
}

/** A field of the metadata; a value of several lines may end with a line break. */
function metadataText(definition: JsonObject, field: 'name' | 'namespace'): string {
  const metadata = own(definition, 'metadata');
  return isJsonObject(metadata) ? textOf(own(metadata, field)).trim() : '';
}

function failure(reason: string, message: string): TemplateFailure {
  return new TemplateFailure(reason, message);
}
