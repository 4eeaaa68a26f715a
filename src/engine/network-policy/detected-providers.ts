// The network providers of a cluster, by its NetworkPolicyProvider objects.
import { isJsonObject } from '../values/json-text.ts';
import { own, textOf, valueAt } from '../../values/index.ts';
import type { Catalogue } from './catalogue.ts';
import { readProvider } from './read-catalogue.ts';
import type { ProviderInstance } from './support.ts';

/** The providers that count, and the catalogue with what administrators declare. */
export interface DetectedProviders {
  readonly instances: readonly ProviderInstance[];
  readonly catalogue: Catalogue;
}

/** Objects that are read: twice the providers that a status has room for. */
const MAX_OBJECTS = 32;

/**
 * Reads a list of NetworkPolicyProviders. Capabilities with mistakes do not count, as in statuses. A provider that the catalogue
 * does not have, as where the controller has another one, is added without rows, so that verdicts on it are Unknown.
 */
export function readDetectedProviders(list: unknown, catalogue: Catalogue): DetectedProviders {
  const items = isJsonObject(list) ? own(list, 'items') : undefined;
  const objects = (Array.isArray(items) ? items : [])
    .slice(0, MAX_OBJECTS)
    .map((object) => ({ object, name: textOf(valueAt(object, 'metadata', 'name')) }))
    .toSorted((one, other) => (one.name < other.name ? -1 : 1));
  const instances = objects.flatMap(({ object, name }) => instanceOf(name, valueAt(object, 'status')));
  const declared = objects.reduce(
    (known, { object, name }) => withCapabilities(known, name, valueAt(object, 'spec', 'capabilities')),
    catalogue,
  );
  const strangers = instances.filter(({ name }) => declared.find(name) === undefined);
  return {
    instances,
    catalogue: declared.extended(strangers.map(({ name }) => ({ name, settings: new Map(), features: {} }))),
  };
}

function instanceOf(name: string, status: unknown): readonly ProviderInstance[] {
  if (valueAt(status, 'isPresent') !== 'True') {
    return [];
  }
  const version = textOf(valueAt(status, 'version'));
  const settings = valueAt(status, 'settings');
  const texts = Object.entries(isJsonObject(settings) ? settings : {}).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return [{ name, settings: Object.fromEntries(texts), ...(version === '' ? {} : { version }) }];
}

function withCapabilities(catalogue: Catalogue, name: string, capabilities: unknown): Catalogue {
  if (!isJsonObject(capabilities)) {
    return catalogue;
  }
  let isValid = true;
  const extension = readProvider({ ...capabilities, name }, catalogue, () => (isValid = false));
  return isValid ? catalogue.extended([extension]) : catalogue;
}
