// Which entries have fields that we applied: `managedFields` know it, of which the cache keeps no more than that.
import {
  isJsonObject,
  type KubernetesObject,
  NETWORK_POLICY_STATUS_MANAGER,
  type NetworkPolicyStatus,
  textOf,
  valueAt,
} from '../resources/index.ts';
import { parseJson } from '../values/index.ts';

/** The object as it is cached: with our `managedFields` only while somebody else wrote an entry that has fields of ours. */
export function withLeftoverFields(object: NetworkPolicyStatus): NetworkPolicyStatus {
  const { managedFields = [], ...metadata } = object.metadata;
  const foreign = (object.status?.providers ?? []).filter(({ reporter }) => reporter !== NETWORK_POLICY_STATUS_MANAGER);
  const names = foreign.length === 0 ? [] : entriesWithOurFields(object);
  const isMixed = foreign.some(({ controllerName }) => names.includes(controllerName));
  const kept = managedFields.filter(({ manager }) => manager === NETWORK_POLICY_STATUS_MANAGER);
  return { ...object, metadata: isMixed ? { ...metadata, managedFields: kept } : metadata };
}

/** The controllerNames of the entries in which we own a field. */
export function entriesWithOurFields({ metadata }: KubernetesObject): readonly string[] {
  return (metadata.managedFields ?? [])
    .filter(({ manager }) => manager === NETWORK_POLICY_STATUS_MANAGER)
    .flatMap(({ fieldsV1 }) => {
      const entries = valueAt(fieldsV1, 'f:status', 'f:providers');
      return Object.keys(isJsonObject(entries) ? entries : {}).flatMap(keyedName);
    });
}

/** The key of an entry: `k:{"controllerName":"cilium.io/agent"}`. */
function keyedName(key: string): readonly string[] {
  return key.startsWith('k:') ? [textOf(valueAt(parseJson(key.slice(2)), 'controllerName'))] : [];
}
