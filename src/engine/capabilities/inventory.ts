import type { ContextAwareResource } from '../../resources/index.ts';
import { EngineError } from '../values/errors.ts';
import type { HostPort, InventoryMode } from './host-port.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { parseJson } from '../../values/index.ts';

/** The objects of the declared kinds in the shape of a Rego mode. JSON text. */
export function buildInventory(
  port: HostPort,
  mode: InventoryMode,
  resources: readonly ContextAwareResource[],
): string {
  return mode === 'opa' ? opaInventory(port, resources) : gatekeeperInventory(port, resources);
}

/**
 * The objects of the declared kinds for Rego policies in OPA mode, at `data.kubernetes`: `<plural>.<namespace>.<name>`,
 * or `<plural>.<name>` for cluster-scoped kinds. JSON text.
 */
function opaInventory(port: HostPort, resources: readonly ContextAwareResource[]): string {
  const inventory: JsonObject = Object.create(null) as JsonObject;
  for (const resource of resources) {
    const plural = pluralName(port, resource);
    for (const { object, name, namespace } of listAll(port, resource)) {
      put(inventory, namespace === undefined ? [plural, name] : [plural, namespace, name], object);
    }
  }
  return JSON.stringify(inventory);
}

/**
 * The same for Gatekeeper policies, at `data.inventory`: `cluster.<apiVersion>.<kind>.<name>` and
 * `namespace.<namespace>.<apiVersion>.<kind>.<name>`. JSON text.
 */
function gatekeeperInventory(port: HostPort, resources: readonly ContextAwareResource[]): string {
  const inventory: JsonObject = Object.create(null) as JsonObject;
  inventory.cluster = Object.create(null) as JsonObject;
  inventory.namespace = Object.create(null) as JsonObject;
  for (const resource of resources) {
    for (const { object, name, namespace } of listAll(port, resource)) {
      const path = [resource.apiVersion, resource.kind, name];
      put(inventory, namespace === undefined ? ['cluster', ...path] : ['namespace', namespace, ...path], object);
    }
  }
  return JSON.stringify(inventory);
}

interface Listed {
  readonly object: JsonObject;
  readonly name: string;
  readonly namespace?: string;
}

function* listAll(port: HostPort, { apiVersion, kind }: ContextAwareResource): Generator<Listed> {
  const answer = port.request('kubernetes/list_resources_all', JSON.stringify({ api_version: apiVersion, kind }));
  const list = parseJson(answer) as JsonValue;
  if (!isJsonObject(list) || !Array.isArray(list.items)) {
    throw new EngineError('capability-failed', `cannot list ${apiVersion}/${kind}: expected a List with items`);
  }
  for (const object of list.items) {
    const metadata = isJsonObject(object) && isJsonObject(object.metadata) ? object.metadata : undefined;
    if (!isJsonObject(object) || typeof metadata?.name !== 'string') {
      throw new EngineError(
        'capability-failed',
        `cannot list ${apiVersion}/${kind}: expected every item to have a name`,
      );
    }
    const { name, namespace } = metadata;
    yield { object, name, ...(typeof namespace === 'string' ? { namespace } : {}) };
  }
}

function pluralName(port: HostPort, { apiVersion, kind }: ContextAwareResource): string {
  const payload = JSON.stringify({ api_version: apiVersion, kind });
  const plural = parseJson(port.request('kubernetes/get_resource_plural_name', payload)) as JsonValue;
  if (typeof plural !== 'string') {
    throw new EngineError('capability-failed', `cannot name the resource of ${apiVersion}/${kind}: expected text`);
  }
  return plural;
}

/** Uses objects without a prototype, so that any name of an object is only a key. */
function put(root: JsonObject, path: readonly string[], object: JsonObject): void {
  let node = root;
  for (const key of path.slice(0, -1)) {
    const next = node[key];
    if (isJsonObject(next)) {
      node = next;
    } else {
      const created = Object.create(null) as JsonObject;
      node[key] = created;
      node = created;
    }
  }
  node[path.at(-1) ?? ''] = object;
}
