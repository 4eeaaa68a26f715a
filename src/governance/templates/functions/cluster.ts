import { jsonText } from '../../../go/index.ts';
import { failTemplate, isTrue } from '../../../go/templates/index.ts';
import type { GoValue } from '../../../go/index.ts';
import { isJsonObject, own, textOf, valueAt } from '../../../values/index.ts';
import type { JsonObject } from '../../../values/index.ts';
import { textOperand } from '../rendering/operands.ts';
import { counted } from '../rendering/rendering.ts';
import type { FunctionRow, GovernanceFunction, Rendering } from '../rendering/rendering.ts';
import { goValueOf, newObject, objectOf } from '../rendering/value-conversion.ts';

const CLAIM_API_VERSION = 'cluster.open-cluster-management.io/v1alpha1';

/** The object, which must exist. */
function required(kind: string, namespace: string, name: string, { lookups }: Rendering): JsonObject {
  if (name === '' || lookups.namespaceOf(namespace) === '') {
    failTemplate(`the ${name === '' ? 'name' : 'namespace'} of the ${kind} is empty`);
  }
  return (
    lookups.get('v1', kind, namespace, name) ??
    failTemplate(`there is no ${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`)
  );
}

function dataOf(object: JsonObject): JsonObject {
  const data = own(object, 'data');
  return isJsonObject(data) ? data : {};
}

/** `fromConfigMap namespace name key`: the text of an entry; empty when the object does not have it. */
function entryOf(kind: string): GovernanceFunction {
  return counted(3, 3, (operands, rendering) => {
    const [namespace, name, key] = [0, 1, 2].map((index) => textOperand(operands, index));
    if (key === undefined || key === '') {
      return failTemplate(`the key of the ${kind} is empty`);
    }
    return textOf(own(dataOf(required(kind, namespace ?? '', name ?? '', rendering)), key));
  });
}

/** `copyConfigMapData namespace name`: all data, as JSON. */
function dataCopy(kind: string): GovernanceFunction {
  return counted(2, 2, (operands, rendering) => {
    const text = jsonText(dataOf(required(kind, textOperand(operands, 0), textOperand(operands, 1), rendering)));
    rendering.meter.chars(text.length);
    return text;
  });
}

function claimValue(name: string, { lookups }: Rendering): string | undefined {
  const claim = lookups.get(CLAIM_API_VERSION, 'ClusterClaim', '', name);
  const spec = claim === undefined ? undefined : own(claim, 'spec');
  return claim === undefined ? undefined : textOf(valueAt(spec, 'value'));
}

/** Objects without managedFields, which have keys that templates cannot name, and are as long as the rest. */
function visible(object: JsonObject): JsonObject {
  const metadata = own(object, 'metadata');
  if (!isJsonObject(metadata) || !Object.hasOwn(metadata, 'managedFields')) {
    return object;
  }
  const { managedFields: _, ...rest } = metadata;
  return { ...object, metadata: rest };
}

/** `lookup apiVersion kind namespace name selector…`: the object, or without a name a list; empty when it is missing. */
function lookup(operands: readonly GoValue[], rendering: Rendering): GoValue {
  const [apiVersion = '', kind = '', namespace = '', name = '', ...selectors] = operands.map((_, index) =>
    textOperand(operands, index),
  );
  if (name === '') {
    return listOf(rendering.lookups.list(apiVersion, kind, namespace, selectors.join(',')), rendering);
  }
  const object = rendering.lookups.get(apiVersion, kind, namespace, name);
  return object === undefined ? newObject() : goValueOf(visible(object), rendering.meter);
}

function listOf(objects: readonly JsonObject[], { meter }: Rendering): GoValue {
  return objectOf([['items', objects.map((object) => goValueOf(visible(object), meter))]]);
}

const ROLE_PREFIX = 'node-role.kubernetes.io/';

/** Nodes that have all roles, and besides `worker` no others. */
function nodesWithRoles(operands: readonly GoValue[], { lookups }: Rendering): readonly JsonObject[] {
  const roles = operands.map((_, index) => textOperand(operands, index)).filter((role) => role.trim() !== '');
  if (roles.length === 0) {
    failTemplate('at least one role is required');
  }
  const labels = roles.map((role) => ROLE_PREFIX + role);
  const allowed = new Set([...labels, `${ROLE_PREFIX}worker`]);
  return lookups
    .list('v1', 'Node', '', labels.join(','))
    .filter((node) => labelKeysOf(node).every((key) => !key.startsWith(ROLE_PREFIX) || allowed.has(key)));
}

function labelKeysOf(object: JsonObject): readonly string[] {
  const labels = valueAt(object, 'metadata', 'labels');
  return isJsonObject(labels) ? Object.keys(labels) : [];
}

function skipObject([value = true]: readonly GoValue[], rendering: Rendering): GoValue {
  if (rendering.skip === undefined) {
    failTemplate('skipObject: there is no object to skip here; leave it out with if');
  }
  if (typeof value !== 'boolean') {
    failTemplate('skipObject: expected a bool');
  }
  rendering.skip ||= isTrue(value);
  return '';
}

export const CLUSTER_FUNCTIONS: readonly FunctionRow[] = [
  ['lookup', counted(4, Infinity, lookup)],
  ['fromConfigMap', entryOf('ConfigMap')],
  ['fromSecret', entryOf('Secret')],
  ['copyConfigMapData', dataCopy('ConfigMap')],
  ['copySecretData', dataCopy('Secret')],
  [
    'fromClusterClaim',
    counted(1, 1, (operands, rendering) => {
      const name = textOperand(operands, 0);
      return claimValue(name, rendering) ?? failTemplate(`there is no ClusterClaim ${name}`);
    }),
  ],
  ['lookupClusterClaim', counted(1, 1, (operands, rendering) => claimValue(textOperand(operands, 0), rendering) ?? '')],
  [
    'getNodesWithExactRoles',
    counted(1, Infinity, (operands, rendering) => listOf(nodesWithRoles(operands, rendering), rendering)),
  ],
  [
    'hasNodesWithExactRoles',
    counted(1, Infinity, (operands, rendering) => nodesWithRoles(operands, rendering).length > 0),
  ],
  ['skipObject', counted(0, 1, skipObject)],
];
