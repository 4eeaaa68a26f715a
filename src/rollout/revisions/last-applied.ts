// The copy of a manifest that client-side `kubectl apply` keeps in an annotation. It removes the fields that its copy has and the
// applied manifest has not.
import { isDeepStrictEqual } from 'node:util';
import { jsonText } from '../../go/index.ts';
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type KubernetesObject,
  LAST_APPLIED_ANNOTATION,
  own,
} from '../../resources/index.ts';
import { MAX_ANNOTATIONS_BYTES } from '../../resources/validation/index.ts';
import { asJson, parseJson, setOwn } from '../../values/index.ts';
import type { RevisedPolicy } from './revision-store.ts';

/**
 * The annotation with the restored spec, so that the next client-side apply removes what only that has. Undefined if the policy
 * has no such annotation, or no room for it.
 *
 * @param policy before the rollback
 */
export function lastAppliedAfter(policy: RevisedPolicy, restored: object): string | undefined {
  const { [LAST_APPLIED_ANNOTATION]: text, ...others } = policy.metadata.annotations ?? {};
  const applied = text === undefined ? undefined : parsed(text);
  const spec = applied === undefined ? undefined : own(applied, 'spec');
  if (applied === undefined || !isJsonObject(spec)) {
    return undefined;
  }
  const updated = `${jsonText({ ...applied, spec: restoredValue(spec, asJson(policy.spec), asJson(restored)) })}\n`;
  const bytes = [LAST_APPLIED_ANNOTATION, updated, ...Object.entries(others).flat()].reduce(
    (sum, part) => sum + Buffer.byteLength(part),
    0,
  );
  return bytes > MAX_ANNOTATIONS_BYTES ? undefined : updated;
}

/** The spec that client-side apply declared; undefined if there is none. */
export function lastAppliedSpec({ metadata }: Pick<KubernetesObject, 'metadata'>): JsonObject | undefined {
  const text = metadata.annotations?.[LAST_APPLIED_ANNOTATION];
  const spec = text === undefined ? undefined : own(parsed(text) ?? {}, 'spec');
  return isJsonObject(spec) ? spec : undefined;
}

/** The restored value without fields that were not applied and do not change: defaults, and those of other writers. */
function restoredValue(applied: JsonValue, present: JsonValue | undefined, restored: JsonValue): JsonValue {
  if (!isJsonObject(applied) || !isJsonObject(restored)) {
    return restored;
  }
  const result: JsonObject = {};
  const before = isJsonObject(present) ? present : {};
  for (const [name, value] of Object.entries(restored)) {
    const part = own(applied, name);
    if (part !== undefined) {
      setOwn(result, name, restoredValue(part, own(before, name), value));
    } else if (!isDeepStrictEqual(own(before, name), value)) {
      setOwn(result, name, value);
    }
  }
  return result;
}

function parsed(text: string): JsonObject | undefined {
  try {
    const applied = parseJson(text);
    return isJsonObject(applied) ? applied : undefined;
  } catch {
    return undefined;
  }
}
