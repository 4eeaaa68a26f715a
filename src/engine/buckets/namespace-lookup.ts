import type { Labels } from '../../resources/index.ts';
import type { HostPort } from '../host-port.ts';
import { isJsonObject } from '../json-text.ts';
import { errorText, parseJson } from '../../values/index.ts';
import type { NamespaceLabels } from './namespace-labels.ts';

/** The labels of a namespace cannot be found out. */
export class NamespaceUnknown extends Error {
  constructor(name: string, reason: string) {
    super(`the labels of the namespace ${JSON.stringify(name)} are not known: ${reason}`);
  }
}

/** Gives the labels of namespaces during one review: those that are not known are asked for, once. */
export class NamespaceLookup {
  readonly #known: NamespaceLabels;
  readonly #port: HostPort;
  #asked: { readonly name: string; readonly result: Labels | NamespaceUnknown } | undefined;

  constructor(known: NamespaceLabels, port: HostPort) {
    this.#known = known;
    this.#port = port;
  }

  /** Undefined when it would have to be asked. */
  known(name: string): Labels | undefined {
    return this.#known.get(name);
  }

  /** Throws {@link NamespaceUnknown}, also when there is no such namespace. */
  get(name: string): Labels {
    const known = this.#known.get(name);
    if (known !== undefined) {
      return known;
    }
    if (this.#asked?.name !== name) {
      this.#asked = { name, result: this.#ask(name) };
    }
    const { result } = this.#asked;
    if (result instanceof NamespaceUnknown) {
      throw result;
    }
    return result;
  }

  #ask(name: string): Labels | NamespaceUnknown {
    const payload = { api_version: 'v1', kind: 'Namespace', name, disable_cache: false };
    try {
      const found = parseJson(this.#port.request('kubernetes/get_resource', JSON.stringify(payload)));
      return labelsOf(found) ?? new NamespaceUnknown(name, 'what was answered is no object');
    } catch (error) {
      return new NamespaceUnknown(name, errorText(error));
    }
  }
}

/** `metadata.labels`; undefined for what has no metadata. */
export function labelsOf(object: unknown): Labels | undefined {
  const metadata = isJsonObject(object) && Object.hasOwn(object, 'metadata') ? object.metadata : undefined;
  if (!isJsonObject(metadata)) {
    return undefined;
  }
  const labels = Object.hasOwn(metadata, 'labels') ? metadata.labels : undefined;
  return isJsonObject(labels) ? (labels as Labels) : {};
}
