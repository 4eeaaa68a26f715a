// The last status of governance policies, after the product was uninstalled.
import { type Condition, type JsonObject, type KubernetesObject, setUninstalled } from '../resources/index.ts';
import { isJsonObject } from '../values/index.ts';

const MESSAGE = 'Portcullis was uninstalled: nothing evaluates or applies the policy, and its compliance is not known';

/** The status of a governance policy of any kind that nobody evaluates; undefined where the controller never wrote one. */
export function uninstalledGovernanceStatus(
  { metadata, status }: KubernetesObject,
  now: number,
): JsonObject | undefined {
  if (!isJsonObject(status) || !Array.isArray(status['conditions']) || status['conditions'].length === 0) {
    return undefined;
  }
  const { compliant: _compliant, ...before } = status;
  // Validated by the schema of the kind.
  const conditions = status['conditions'] as unknown as readonly Condition[];
  const generation = Number(status['observedGeneration'] ?? metadata.generation ?? 0);
  const lists = ['details', 'status'].flatMap((field) => {
    const list = status[field];
    return Array.isArray(list) ? [[field, list.map(withoutCompliance)] as const] : [];
  });
  const messages = ['message', 'statusMessage'].filter((field) => Object.hasOwn(status, field));
  return {
    ...before,
    ...Object.fromEntries(lists),
    ...Object.fromEntries(messages.map((field) => [field, MESSAGE])),
    conditions: setUninstalled(conditions, MESSAGE, Math.max(generation, 0), now) as unknown as JsonObject[],
  };
}

function withoutCompliance(entry: unknown): JsonObject {
  const { compliant: _compliant, ...others } = isJsonObject(entry) ? entry : {};
  return others;
}
