// Objects that parameters of a namespaced policy are in.
import { isJsonObject, type JsonObject, own, textOf } from '../../resources/index.ts';
import { objectIn } from '../../values/index.ts';

/** An object in the namespace of the policy; without `name`, that namespace itself. */
export interface ReadObject {
  /** The field of the policy that names it. */
  readonly field: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly name?: string;
}

/** @param spec of a policy or group, which is not validated */
export function parameterObjects(spec: JsonObject): readonly ReadObject[] {
  const objects = new Map<string, ReadObject>();
  for (const [path, use] of usesOf(spec)) {
    for (const object of objectsOf(use, `${path}.parameters`)) {
      const { apiVersion, kind, name } = object;
      const key = JSON.stringify([apiVersion, kind, name]);
      objects.set(key, objects.get(key) ?? object);
    }
  }
  return [...objects.values()];
}

/** The policy, or the members of a group. */
function usesOf(spec: JsonObject): readonly (readonly [path: string, use: JsonObject])[] {
  const members = own(spec, 'policies');
  return isJsonObject(members)
    ? Object.entries(members).flatMap(([name, use]) => (isJsonObject(use) ? [[`spec.policies[${name}]`, use]] : []))
    : [['spec', spec]];
}

function objectsOf(use: JsonObject, path: string): readonly ReadObject[] {
  const parameters = objectIn(use, 'parameters');
  const from = objectIn(parameters, 'from');
  const resource = own(from, 'resource');
  const expression = textOf(own(parameters, 'settingsExpression'));
  const namespace = { apiVersion: 'v1', kind: 'Namespace' };
  return [
    ...(isJsonObject(resource) ? [readObject(resource, `${path}.from.resource`)] : []),
    ...(own(from, 'namespace') === undefined ? [] : [{ field: `${path}.from.namespace`, ...namespace }]),
    // Not parsed: a policy that only names it in a text asks for a right more.
    ...(expression.includes('namespaceObject') ? [{ field: `${path}.settingsExpression`, ...namespace }] : []),
  ];
}

function readObject(resource: JsonObject, field: string): ReadObject {
  const [apiVersion = '', kind = '', name = ''] = ['apiVersion', 'kind', 'name'].map((key) =>
    textOf(own(resource, key)),
  );
  return { field, apiVersion, kind, name };
}
