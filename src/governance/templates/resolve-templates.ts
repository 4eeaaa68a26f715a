import { parseYaml, YamlSyntaxError } from '../../values/yaml/index.ts';
import { compareStrings } from '../../go/index.ts';
import {
  failTemplate,
  invalidTemplate,
  limitedMeter,
  Template,
  TemplateError,
  UnknownFunctionError,
} from '../../go/templates/index.ts';
import type { GoValue } from '../../go/index.ts';
import type { Delimiters, TemplateFunctions, TemplatePart } from '../../go/templates/index.ts';
import { groupVersionOf } from '../../resources/index.ts';
import { isJsonObject, isNestedDeeper, own, parseJson, setOwn } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { isTypedText, LITERAL_FUNCTIONS, unquotedBlock, withIndents, withoutQuotes } from './author-text.ts';
import { functionsFor } from './function-table.ts';
import { hubText, withoutTemplates } from './hub-values.ts';
import { MAX_CHARACTERS, MAX_STEPS, MAX_TEMPLATE_LENGTH } from './rendering/limits.ts';
import { ObjectLookups, UnknownTemplateObject } from './rendering/object-lookups.ts';
import type { Rendering } from './rendering/rendering.ts';
import type { ReadGate, TemplateLookup, TemplateObjects } from './rendering/template-objects.ts';
import { unknownFunction } from './unknown-function.ts';
import { goValueOf, jsonOf } from './rendering/value-conversion.ts';

/** Deepest objectDefinition, and deepest value of `toLiteral`. Kubernetes objects stay below 30 levels. */
export const MAX_DEPTH = 100;

/** Columns by which each level of an object is indented in YAML. */
const YAML_INDENT = 2;

/** Columns of the objects that a ConfigurationPolicy wraps (`spec.object-templates[].objectDefinition`). */
const WRAPPED_INDENT = 8;

/** The group of ManagedCluster. */
const CLUSTER_GROUP = 'cluster.open-cluster-management.io';

export const MANAGED: Delimiters = { left: '{{', right: '}}' };
export const HUB: Delimiters = { left: '{{hub', right: 'hub}}' };

export interface TemplateOptions {
  readonly objects: TemplateObjects;
  /** The variables: `ObjectName`, `ObjectNamespace`, `Object`. Defaults to none. */
  readonly context?: JsonObject;
  /** Refuses look-ups. Defaults to none. */
  readonly mayRead?: ReadGate;
  /** The namespace of look-ups that name none. Defaults to the empty one: all namespaces, or cluster-scoped kinds. */
  readonly defaultNamespace?: string;
  /** The result of `now`. Defaults to the current time. */
  readonly now?: Date;
}

export type TemplateResolution = TemplateOutcome & {
  /** Everything that was looked up, also when the rendering failed: render again when any of it changes. */
  readonly lookedUp: readonly TemplateLookup[];
  /** Whether Secrets were read: the value, and messages about it, must be redacted. */
  readonly usedSensitive: boolean;
};

type TemplateOutcome =
  | { readonly state: 'resolved'; readonly value: JsonValue }
  /** `skipObject` was called. */
  | { readonly state: 'skipped' }
  /** Objects have not been read yet: read them, and render again. */
  | { readonly state: 'unknown'; readonly missing: readonly TemplateLookup[] }
  /** The message says where and why. It has no values of the cluster, but names that are looked up, and the text of `fail`. */
  | { readonly state: 'failed'; readonly error: TemplateError };

/** Whether a value has templates: rendering others changes nothing. */
export function hasTemplates(value: JsonValue): boolean {
  return JSON.stringify(value).includes('{{');
}

/** Whether a value has templates of the hub. */
export function hasHubTemplates(value: JsonValue): boolean {
  return JSON.stringify(value).includes(HUB.left);
}

/**
 * Resolves the templates of an objectDefinition (an object), or of `object-templates-raw` (a text, whose value is a list).
 * All failures are results.
 *
 * Values that templates look up are never parsed as templates. Upstream renders an objectDefinition as one YAML text and
 * parses the result again, so that values can add fields. Here each string of the object is rendered by itself, and stays
 * one value, which differs where templates depend on the text around them:
 *
 * - A string without `toInt`, `toBool`, `toLiteral`, `copyConfigMapData` and `copySecretData` stays a string. Upstream reads
 *   `80{{ "80" }}` as a number, because YAML needs no quotes for it.
 * - Text of the cluster beside those functions makes the whole a string; upstream parses it.
 * - Lines stay lines. Upstream folds those of `'{{ … | autoindent }}'` into one.
 * - Variables, definitions and conditions of a string end with it.
 *
 * `object-templates-raw` is rendered as one text, which is parsed as YAML once: there, values can add fields. Quote them
 * (`toRawJson`).
 */
export function resolveTemplates(source: JsonObject | string, options: TemplateOptions): TemplateResolution {
  return resolve(source, options, MANAGED);
}

/**
 * Resolves `{{hub … hub}}` of a policy's template before it is given to a cluster: all strings, `object-templates-raw` as
 * well. `{{ … }}` stays for the cluster. Values of the hub are data there too: outside of `{{ … }}` their braces are
 * escaped; inside, only numbers and what cannot leave a text in double quotes are accepted. Secrets are refused: their
 * values would be stored in the policy.
 * @param source a ConfigurationPolicy: `indent` counts from the objects that it wraps
 * @param options with the variables `ManagedClusterName`, `ManagedClusterLabels` and `PolicyMetadata`; restrict look-ups by
 *   {@link namespaceGate}
 */
export function resolveHubTemplates(source: JsonObject, options: TemplateOptions): TemplateResolution {
  return resolve(source, { ...options, mayRead: withoutSecrets(options.mayRead ?? (() => true)) }, HUB);
}

/** Allows look-ups in a namespace, and of the ManagedCluster of this name. */
export function namespaceGate(namespace: string, managedClusterName: string): ReadGate {
  return (lookup) =>
    lookup.namespace === namespace ||
    (lookup.kind === 'ManagedCluster' &&
      groupVersionOf(lookup.apiVersion).group === CLUSTER_GROUP &&
      lookup.name === managedClusterName) ||
    `lookups are restricted to namespace ${namespace}`;
}

function withoutSecrets(gate: ReadGate): ReadGate {
  return (lookup) =>
    lookup.kind === 'Secret'
      ? 'Secrets are not available to hub templates; look them up on the managed cluster, with {{ … }}'
      : gate(lookup);
}

function resolve(source: JsonObject | string, options: TemplateOptions, delimiters: Delimiters): TemplateResolution {
  const { objects, mayRead = () => true, defaultNamespace = '' } = options;
  const lookups = new ObjectLookups(objects, mayRead, defaultNamespace);
  const skip = typeof source === 'string' || delimiters === HUB ? undefined : false;
  const resolver = new TemplateResolver(lookups, options, delimiters, skip);
  const outcome = settled(() => (typeof source === 'string' ? resolver.raw(source) : resolver.object(source)));
  const { lookedUp, unknown, usedSensitive } = lookups;
  if (resolver.isSkipped) {
    return { state: 'skipped', lookedUp, usedSensitive };
  }
  return { ...(unknown.length > 0 ? { state: 'unknown', missing: unknown } : outcome), lookedUp, usedSensitive };
}

function settled(resolve: () => JsonValue): TemplateOutcome {
  try {
    return { state: 'resolved', value: resolve() };
  } catch (error) {
    if (error instanceof UnknownTemplateObject) {
      return { state: 'unknown', missing: [] };
    }
    return { state: 'failed', error: templateError(error) };
  }
}

/** The stack, or a string, may still be too small for what the limits allow. */
export function templateError(error: unknown): TemplateError {
  if (error instanceof UnknownFunctionError) {
    return unknownFunction(error);
  }
  if (error instanceof TemplateError) {
    return error;
  }
  if (error instanceof RangeError) {
    return new TemplateError('template-limit', 'the template needs too much memory', { cause: error });
  }
  throw error;
}

export type Path = readonly (string | number)[];

class TemplateResolver {
  readonly #rendering: Rendering;
  readonly #functions: TemplateFunctions;
  readonly #options: TemplateOptions;
  readonly #delimiters: Delimiters;
  #data: GoValue;
  #blockIndent = 0;
  #length = 0;

  constructor(lookups: ObjectLookups, options: TemplateOptions, delimiters: Delimiters, skip: boolean | undefined) {
    const blockIndent = (): number => this.#blockIndent;
    this.#options = options;
    this.#delimiters = delimiters;
    this.#rendering = {
      meter: limitedMeter(MAX_STEPS, MAX_CHARACTERS),
      lookups,
      now: options.now ?? new Date(),
      get blockIndent() {
        return blockIndent();
      },
      skip,
    };
    this.#functions = functionsFor(this.#rendering);
  }

  get isSkipped(): boolean {
    return this.#rendering.skip === true;
  }

  object(source: JsonObject): JsonValue {
    this.#readContext();
    return this.#value(source, []);
  }

  raw(source: string): JsonValue {
    this.#readContext();
    const text = this.#render(withoutQuotes(source, this.#delimiters))
      .map((part) => part.text)
      .join('');
    const value = this.#yaml(text, failRaw);
    return Array.isArray(value)
      ? value
      : value === null
        ? []
        : invalidTemplate('the result is no list of object templates');
  }

  #readContext(): void {
    this.#data = goValueOf(this.#options.context ?? {}, this.#rendering.meter);
  }

  #value(value: JsonValue, path: Path): JsonValue {
    if (path.length > MAX_DEPTH) {
      throw new TemplateError('template-limit', `the object is nested deeper than ${MAX_DEPTH} levels`);
    }
    if (Array.isArray(value)) {
      return value.map((item, index) => this.#value(item, [...path, index]));
    }
    if (isJsonObject(value)) {
      return this.#map(value, path);
    }
    return typeof value === 'string' && this.#isTemplate(value) ? this.#string(value, path) : value;
  }

  /** In the order of keys that a YAML text has, because functions may change the variables. */
  #map(object: JsonObject, path: Path): JsonObject {
    const result: JsonObject = {};
    for (const key of Object.keys(object).toSorted(compareStrings)) {
      const resolved = this.#isTemplate(key) ? this.#key(key, path) : key;
      if (Object.hasOwn(result, resolved)) {
        invalidTemplate(`${pathText(path)}: two keys have the same text`);
      }
      setOwn(result, resolved, this.#value(object[key] ?? null, [...path, resolved]));
    }
    return result;
  }

  #isTemplate(text: string): boolean {
    return text.includes(this.#delimiters.left);
  }

  #key(key: string, path: Path): string {
    return this.#at([...path, key], () => this.#text(this.#render(key))) ?? key;
  }

  #text(parts: readonly TemplatePart[]): string {
    return this.#delimiters === HUB ? hubText(parts) : parts.map(({ text }) => text).join('');
  }

  #string(text: string, path: Path): JsonValue {
    const isInList = typeof path.at(-1) === 'number';
    const field = isInList ? text : unquotedBlock(text, this.#delimiters);
    const isTyped = !isInList && isTypedText(field, this.#delimiters);
    const value = this.#at(path, (): JsonValue => {
      const parts = this.#render(field.includes('\n') && !isTyped ? withoutQuotes(field, this.#delimiters) : field);
      const typed = isTyped ? this.#typed(parts) : undefined;
      return typed === undefined ? this.#text(parts) : typed;
    });
    return value === undefined ? text : value;
  }

  /** Adds the path to errors. Undefined when the value needs an object that is not known yet: others are evaluated. */
  #at<Value>(path: Path, evaluate: () => Value): Value | undefined {
    this.#blockIndent = path.length * YAML_INDENT - (this.#delimiters === HUB ? WRAPPED_INDENT : 0);
    try {
      return evaluate();
    } catch (error) {
      if (error instanceof UnknownTemplateObject) {
        return undefined;
      }
      const { code, message, cause } = templateError(error);
      throw new TemplateError(code, `${pathText(path)}: ${message}`, { cause });
    }
  }

  #render(text: string): readonly TemplatePart[] {
    this.#length += text.length;
    if (this.#length > MAX_TEMPLATE_LENGTH) {
      throw new TemplateError('template-limit', `the template is longer than ${MAX_TEMPLATE_LENGTH} characters`);
    }
    if (this.#delimiters !== HUB && text.includes(HUB.left)) {
      invalidTemplate('{{hub … hub}} is resolved on a hub, before the policy is given to this cluster');
    }
    const template = new Template(withIndents(text), this.#functions, this.#delimiters);
    return template.parts(this.#data, this.#rendering.meter, 'struct');
  }

  /**
   * The value of actions such as `toInt`. Undefined when there is text of the cluster beside it, which is not parsed.
   */
  #typed(parts: readonly TemplatePart[]): JsonValue | undefined {
    const filled = parts.filter(({ text }) => text.trim() !== '');
    if (!filled.every(isParsable)) {
      return undefined;
    }
    const [first] = filled;
    const value = first?.action?.value;
    if (filled.length === 1 && typeof value !== 'string' && value !== undefined) {
      return jsonOf(value, this.#rendering.meter);
    }
    const parsed = this.#inline(parts.map(({ text }) => text).join(''));
    return this.#delimiters === HUB ? withoutTemplates(parsed) : parsed;
  }

  /** The value that a text has in YAML after a key. */
  #inline(text: string): JsonValue {
    const parsed = jsonText(text) === undefined ? this.#yaml(`value: ${text.trim()}`) : { value: this.#yaml(text) };
    return isJsonObject(parsed) ? (own(parsed, 'value') ?? null) : null;
  }

  /** The value of a text in YAML; JSON is read as such, because YAML has other escapes. */
  #yaml(text: string, fail: Fail = failTemplate): JsonValue {
    const { meter, lookups } = this.#rendering;
    const json = jsonText(text);
    const value = json === undefined ? parseDocument(text, lookups.usedSensitive, fail) : json;
    return jsonOf(goValueOf(value, meter), meter);
  }
}

/** Texts of the template, numbers and bools, and results of functions that say that they are YAML. */
function isParsable({ action }: TemplatePart): boolean {
  return (
    action === undefined ||
    typeof action.value === 'bigint' ||
    typeof action.value === 'number' ||
    typeof action.value === 'boolean' ||
    LITERAL_FUNCTIONS.has(action.functionName)
  );
}

function jsonText(text: string): unknown {
  if (!/^\s*[{["]/.test(text) || isNestedDeeper(text, MAX_DEPTH)) {
    return undefined;
  }
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

type Fail = (message: string) => never;

/** In upstream's words, which users search for. */
function failRaw(message: string): never {
  throw new TemplateError('template-failed', `Error parsing object-templates-raw YAML: ${message}`);
}

/** @param isSensitive whether the reason of an error may have secret text */
function parseDocument(text: string, isSensitive: boolean, fail: Fail): unknown {
  try {
    const [document = null, ...others] = parseYaml(text);
    return others.length === 0 ? document : fail('the result has several YAML documents');
  } catch (error) {
    if (error instanceof YamlSyntaxError) {
      const line = text.slice(0, error.offset).split('\n').length;
      return fail(`line ${line} of the result is not valid YAML${isSensitive ? '' : `: ${error.message}`}`);
    }
    throw error;
  }
}

/** `data.key`, `spec.ports[0]`. */
export function pathText(path: Path): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : text === '' ? part : `${text}.${part}`),
    '',
  );
}
