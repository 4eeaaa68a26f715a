// Applies mutations. Loaded with the first one, because it loads the schemas of the Kubernetes kinds.
import type { CelValue } from '../../cel/index.ts';
import { applyPatchSteps, kubernetesSchema, PatchError } from '../../resources/index.ts';
import type { PatchStep, Schema } from '../../resources/index.ts';
import { mergeApplied, MergeError } from '../../resources/structured-merge/index.ts';
import type { JsonObject } from '../values/json-text.ts';
import { MutationValueError } from './mutation-structs.ts';
import { mergeObject } from './structural-merge.ts';

/** Applies a JSON patch; when a `test` fails, the object stays unchanged. Throws {@link MutationValueError}. */
export function applyJsonPatchMutation(object: CelValue, steps: readonly PatchStep[]): CelValue {
  try {
    return applyPatchSteps(object, steps) as CelValue;
  } catch (error) {
    if (!(error instanceof PatchError)) {
      throw error;
    }
    if (error.code === 'test-failed') {
      return object;
    }
    throw new MutationValueError(`JSON Patch: ${error.message}`, { cause: error });
  }
}

/**
 * Merges the value of an ApplyConfiguration into an object, by the schema of its kind, or field by field without one.
 * Throws {@link MutationValueError}.
 */
export function applyConfigurationMutation(object: JsonObject, applied: JsonObject): JsonObject {
  const { apiVersion, kind } = object;
  const schema = schemaOf(apiVersion, kind);
  if (schema === undefined || apiVersion === undefined || kind === undefined) {
    return mergeObject(object, applied);
  }
  try {
    return mergeApplied(object, { ...applied, apiVersion, kind }, schema);
  } catch (error) {
    throw error instanceof MergeError
      ? new MutationValueError(`error applying patch: ${error.message}`, { cause: error })
      : error;
  }
}

function schemaOf(apiVersion: unknown, kind: unknown): Schema | undefined {
  return typeof apiVersion === 'string' && typeof kind === 'string' ? kubernetesSchema(apiVersion, kind) : undefined;
}
