// Patches of verdicts.
import type { JsonValue, PatchOperation, Verdict } from '../../../engine/index.ts';
import { applyPatchSteps } from '../../../resources/index.ts';
import { parseExactJson } from '../../../values/index.ts';

/** The operations of a verdict's patch; none if it has no patch. */
export function patchOf({ patch }: Verdict): readonly PatchOperation[] {
  return patch === undefined ? [] : (parseExactJson(patch) as PatchOperation[]);
}

/** The object after a patch. @throws PatchError when an API server could not apply it */
export function patched(object: JsonValue, patch: readonly PatchOperation[]): JsonValue {
  return applyPatchSteps(object, patch.map(patchStep)) as JsonValue;
}

/** The patch of a policy may have operations that our differ never produces, such as `move`. */
function patchStep(operation: PatchOperation): { op: string; path: string; from: string; value: unknown } {
  const { op, path, from = '', value }: { op: string; path: string; from?: string; value?: unknown } = operation;
  return { op, path, from, value };
}
