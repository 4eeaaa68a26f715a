import { CelDouble, CelUint, POLICY_COST_BUDGET } from '../../cel/index.ts';
import type { CelValue } from '../../cel/index.ts';
import type { PatchStep } from '../../resources/index.ts';
import { EngineError } from '../values/errors.ts';
import { MAX_NESTING } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { applyConfigurationMutation, applyJsonPatchMutation } from './apply-mutation.ts';
import type { CompiledMutation, CompiledPolicy } from './compiled-policy.ts';
import { ExpressionRun, OutOfBudget } from './expression-run.ts';
import type { Activation } from './expression-run.ts';
import { checkMatchConditions } from './match-conditions.ts';
import { checkTypeNames, jsonOf, JsonPatchValue, MutationValueError, ObjectValue } from './mutation-structs.ts';

/** Result of a mutating policy. */
export interface MutationResult {
  /** Unchanged without mutations. */
  readonly object: CelValue;
  /** Whether any mutation was applied, even if it changed nothing. */
  readonly isMutated: boolean;
  /** Errors of failed mutations; later mutations are still applied. */
  readonly errors: readonly string[];
}

/** Applies a mutating policy like API servers. Never throws. */
export function mutate(policy: CompiledPolicy, activation: Activation): MutationResult {
  const { object } = activation;
  const matching = checkMatchConditions(policy, activation);
  if ('error' in matching) {
    return { object, isMutated: false, errors: [matching.error] };
  }
  if (!matching.matches || object === null) {
    return { object, isMutated: false, errors: [] };
  }
  const errors: string[] = [];
  let current: CelValue = object;
  let isMutated = false;
  for (const mutation of policy.mutations) {
    try {
      current = applyMutation(policy, mutation, { ...activation, object: current });
      isMutated = true;
    } catch (error) {
      if (!(error instanceof OutOfBudget || error instanceof MutationValueError)) {
        throw error;
      }
      errors.push(error.message);
    }
  }
  return { object: current, isMutated, errors };
}

function applyMutation(policy: CompiledPolicy, mutation: CompiledMutation, activation: Activation): CelValue {
  const result = new ExpressionRun(policy, activation, POLICY_COST_BUDGET).evaluate(mutation);
  if ('error' in result) {
    throw new MutationValueError(result.error);
  }
  return mutation.patchType === 'JSONPatch'
    ? patch(activation.object, result.value)
    : merge(activation.object, result.value);
}

function patch(object: CelValue, value: CelValue): CelValue {
  if (!Array.isArray(value)) {
    throw new MutationValueError('type mismatch: JSONPatchType.expression should evaluate to array');
  }
  const steps = (value as readonly CelValue[]).map(stepOf);
  return applyJsonPatchMutation(object, steps);
}

function stepOf(value: CelValue): PatchStep {
  if (!(value instanceof JsonPatchValue)) {
    throw new MutationValueError('type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch');
  }
  const added = value.fields.get('value');
  if (added instanceof ObjectValue) {
    checkTypeNames(added);
  }
  return {
    op: value.text('op'),
    path: value.text('path'),
    from: value.text('from'),
    value: added === undefined ? undefined : patchedJson(added),
  };
}

function patchedJson(value: CelValue): JsonValue {
  try {
    return jsonOf(value);
  } catch (error) {
    if (!(error instanceof MutationValueError)) {
      throw error;
    }
    const text = `JSONPath valueExpression evaluated to a type that could not marshal to JSON: ${error.message}`;
    throw new MutationValueError(text, { cause: error });
  }
}

function merge(object: CelValue, value: CelValue): CelValue {
  if (!(value instanceof ObjectValue)) {
    throw new MutationValueError('unsupported return type from ApplyConfiguration expression');
  }
  checkTypeNames(value);
  // Numbers of CEL are objects; the merge treats them as leaves.
  return applyConfigurationMutation(object as JsonObject, jsonOf(value) as JsonObject);
}

/**
 * A value with plain JSON numbers, as from JSON.parse. Parts that are plain already are returned, not copied. Throws
 * EngineError `nested-too-deep`.
 */
export function plainJson(value: CelValue, depth = 0): JsonValue {
  if (depth > MAX_NESTING) {
    throw new EngineError('nested-too-deep', `mutations nest the object deeper than ${MAX_NESTING} levels`);
  }
  if (Array.isArray(value)) {
    return plainList(value as readonly JsonValue[], depth + 1);
  }
  if (value instanceof CelDouble) {
    return value.value;
  }
  if (typeof value === 'bigint') {
    return Number(value);
  }
  if (value instanceof CelUint) {
    return Number(value.value);
  }
  return typeof value === 'object' && value !== null ? plainObject(value as JsonObject, depth + 1) : value;
}

function plainList(values: readonly JsonValue[], depth: number): JsonValue {
  const plain = values.map((value) => plainJson(value, depth));
  return plain.every((value, index) => value === values[index]) ? (values as JsonValue[]) : plain;
}

function plainObject(object: JsonObject, depth: number): JsonValue {
  const changed = new Map<string, JsonValue>();
  for (const key of Object.keys(object)) {
    const value = object[key] ?? null;
    const plain = plainJson(value, depth);
    if (plain !== value) {
      changed.set(key, plain);
    }
  }
  return changed.size === 0 ? object : Object.fromEntries([...Object.entries(object), ...changed]);
}
