// Kubernetes objects in manifests with their places: YAML streams, as Helm and Kustomize print them, and Lists.
import { groupVersionOf } from '../resources/index.ts';
import { parseYaml, YamlPositions, YamlSyntaxError } from '../values/yaml/index.ts';
import { isJsonObject, type JsonObject, type JsonValue, own, textOf, textPosition, valueAt } from '../values/index.ts';
import { malformedManifests } from './document.ts';
import { CliError } from './errors.ts';
import { LineNumbers } from './line-numbers.ts';
import { listItems } from './list-items.ts';
import { plainValue } from './plain-json.ts';
import { oneLine } from './table.ts';

/** Where an object is. */
interface ObjectPlace {
  /** Counted from 1. */
  readonly line: number;
  /** The template that Helm rendered, by its comment `# Source:`. */
  readonly template?: string;
}

/** An object of a text. */
export interface ManifestObject extends ObjectPlace {
  readonly object: JsonObject;
  /** Its place in the text: a document, and the path of an item of a List. */
  readonly at: { readonly document: number; readonly path: readonly (string | number)[] };
}

/** The objects of a text, and the lines of documents that are none. */
export interface ManifestObjects {
  readonly objects: readonly ManifestObject[];
  readonly others: readonly number[];
}

/** The namespace of objects that name none. */
export const DEFAULT_NAMESPACE = 'default';
/** The API group of files that only Kustomize reads. */
const KUSTOMIZE_GROUP = 'kustomize.config.k8s.io';
/** As API servers require it: a DNS-1035 label that may have capital letters. */
const KIND = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/i;
/** Longest path of a template that is shown. Linux file names are shorter. */
const MAX_TEMPLATE_LENGTH = 255;
const HELM_COMMENT = /^# Source: (\S.*)$/gm;
const HELM_HINT = 'It seems to be a template of Helm. Give the output of helm template in its place.';
const HELM_ACTION = /\{\{[^}]*\}\}/;

/**
 * The objects of a YAML or JSON text. Empty documents are skipped.
 * @param name of the file for messages
 * @throws CliError with the position of what is not YAML
 */
export function manifestObjects(text: string, name: string): ManifestObjects {
  const documents = plainValue(parsed(text, name), name);
  const reader = new ObjectReader(text, name);
  for (const [index, document] of (Array.isArray(documents) ? documents : []).entries()) {
    reader.read(document, { document: index, path: [] });
  }
  return reader;
}

/** The lines of paths such as `['spec', 'replicas']` in an object of a text, or of the nearest fields around them. */
export function linesOf(text: string): (at: ManifestObject['at'], path: readonly (string | number)[]) => number {
  const positions = new YamlPositions(text);
  const lines = new LineNumbers(text);
  return ({ document, path: start }, path) => lines.at(positions.offsetOf([...start, ...path], document));
}

/** An object for messages: `Deployment shop/web`. */
export function objectText(object: JsonObject): string {
  const field = (key: string): string => textOf(valueAt(object, 'metadata', key));
  const name = field('name') || (field('generateName') === '' ? 'without a name' : `${field('generateName')}*`);
  return oneLine(`${textOf(own(object, 'kind'))} ${field('namespace') === '' ? '' : `${field('namespace')}/`}${name}`);
}

/** Identifies an object: its group, kind, namespace and name. */
export function objectId(object: JsonObject): string {
  const { group } = groupVersionOf(textOf(own(object, 'apiVersion')));
  const field = (key: string): string => textOf(valueAt(object, 'metadata', key));
  const namespace = field('namespace') || DEFAULT_NAMESPACE;
  return JSON.stringify([group, textOf(own(object, 'kind')), namespace, field('name')]);
}

function parsed(text: string, name: string): unknown[] {
  try {
    return parseYaml(text, 'kubernetes-exact');
  } catch (error) {
    if (!(error instanceof YamlSyntaxError)) {
      throw error;
    }
    const isTemplate = HELM_ACTION.test(text);
    throw malformedManifests(text, name, error, isTemplate ? HELM_HINT : undefined);
  }
}

class ObjectReader implements ManifestObjects {
  readonly objects: ManifestObject[] = [];
  readonly others: number[] = [];
  readonly #text: string;
  readonly #name: string;
  readonly #positions: YamlPositions;
  readonly #lines: LineNumbers;
  /** Comments of Helm that are not passed yet. Objects are read in the order of the text. */
  readonly #comments: Iterator<RegExpExecArray, undefined>;
  #comment: RegExpExecArray | undefined;
  #next: RegExpExecArray | undefined;

  constructor(text: string, name: string) {
    this.#text = text;
    this.#name = name;
    this.#positions = new YamlPositions(text);
    this.#lines = new LineNumbers(text);
    this.#comments = text.matchAll(HELM_COMMENT);
    this.#next = this.#comments.next().value;
  }

  /** Adds the object at a place, or the items of a List. Recursion is bounded by the depth of YAML. */
  read(value: JsonValue, at: ManifestObject['at']): void {
    if (value === null) {
      return;
    }
    const offset = this.#positions.offsetOf(at.path, at.document);
    const line = this.#lines.at(offset);
    if (!isJsonObject(value) || !isManifest(value)) {
      this.others.push(line);
      return;
    }
    const kind = textOf(own(value, 'kind'));
    if (!KIND.test(kind)) {
      const { excerpt } = textPosition(this.#text, offset);
      throw new CliError(`${this.#name}:${line}: expected a kind such as Pod, got ${oneLine(kind, 80)}\n${excerpt}`);
    }
    const items = listItems(value, () => `${this.#name}:${line}`);
    if (items !== undefined) {
      for (const [index, item] of items.entries()) {
        this.read(item as JsonValue, { ...at, path: [...at.path, 'items', index] });
      }
      return;
    }
    const template = this.#templateAt(offset, at.document);
    this.objects.push({ object: value, at, line, ...(template === undefined ? {} : { template }) });
  }

  /** Of the last comment before an object, and after the document before. */
  #templateAt(offset: number, document: number): string | undefined {
    const start = document === 0 ? 0 : this.#positions.offsetOf([], document - 1);
    while (this.#next !== undefined && this.#next.index < offset) {
      this.#comment = this.#next;
      this.#next = this.#comments.next().value;
    }
    const comment = this.#comment;
    return comment !== undefined && comment.index >= start ? oneLine(comment[1] ?? '', MAX_TEMPLATE_LENGTH) : undefined;
  }
}

function isManifest(value: JsonObject): boolean {
  const apiVersion = textOf(own(value, 'apiVersion'));
  return apiVersion !== '' && !apiVersion.startsWith(`${KUSTOMIZE_GROUP}/`) && textOf(own(value, 'kind')) !== '';
}
