import { CelBoxed, EvaluationFailure, NO_SUCH_OVERLOAD } from '../model/value.ts';
import type { CelResult, CelValue } from '../model/value.ts';
import { goTypeOf, hasField, isPlainName, isQualifier, lookup, missing, plainField } from './access.ts';
import type { Frame, Run } from './frame.ts';
import { CelOptional } from './optional.ts';

// An attribute is a variable or another operand with all its selections, as in cel-go. The lookup costs 1, and each
// selection that is reached costs 1 more. In a conditional, the 1 of both branches is not counted, and the conditional
// itself costs nothing.

/** One selection: a field, an index or a key. */
export interface Qualifier {
  /** The key, if it is a constant. */
  readonly key: CelValue;
  /** Computes the key, if it is not a constant. */
  readonly compute: Run | undefined;
  readonly isOptional: boolean;
  /** Whether it tests for presence; only the last qualifier can. */
  readonly isTest: boolean;
  /** Whether a presence test on a value without fields fails, as in the specification. */
  /** Id of the expression, for failures. */
  readonly id: number;
}

type AttributeRoot =
  /** A slot that is set before the evaluation. */
  | { readonly kind: 'slot'; readonly slot: number }
  /** An operand that is evaluated on use. */
  | { readonly kind: 'operand'; readonly run: Run }
  | {
      readonly kind: 'conditional';
      readonly condition: Run;
      readonly truthy: Attribute;
      readonly falsy: Attribute;
      readonly id: number;
      /** Whether `has` tests a field of the chosen value. */
      readonly isTested?: boolean;
    };

export interface Attribute {
  readonly kind: 'attribute';
  readonly root: AttributeRoot;
  readonly qualifiers: readonly Qualifier[];
}

export function attribute(root: AttributeRoot): Attribute {
  return { kind: 'attribute', root, qualifiers: [] };
}

/** The attribute with one more selection. For a conditional, both branches get it. */
export function qualified(from: Attribute, qualifier: Qualifier): Attribute {
  if (from.root.kind === 'conditional') {
    const { condition, truthy, falsy, id } = from.root;
    return attribute({
      kind: 'conditional',
      condition,
      truthy: qualified(truthy, qualifier),
      falsy: qualified(falsy, qualifier),
      id,
      isTested: qualifier.isTest,
    });
  }
  return { ...from, qualifiers: [...from.qualifiers, qualifier] };
}

/** Evaluates an attribute. `ownCost` is its cost without the selections. */
export function runAttribute(of: Attribute, ownCost: 0 | 1): Run {
  if (of.root.kind === 'conditional') {
    const run = runConditional(of.root);
    return ownCost === 1 && of.root.isTested === true ? withoutOneCost(run) : run;
  }
  const root = runRoot(of.root);
  if (of.qualifiers.length === 0) {
    return of.root.kind === 'slot' ? runSlot(of.root.slot, ownCost) : runOperand(root, ownCost);
  }
  const raw = runQualified(of, root, ownCost);
  return isOptionalChain(of) ? asOptional(raw) : (raw as Run);
}

/** Like {@link Run}, but returns undefined for `optional.none()` and the plain value for another optional. */
type RawRun = (frame: Frame) => CelResult | undefined;

/** Evaluates an attribute with an optional selection without creating an optional; undefined for other attributes. */
export function runRawOptional(of: Attribute): RawRun | undefined {
  return of.root.kind !== 'conditional' && isOptionalChain(of) ? runQualified(of, runRoot(of.root), 1) : undefined;
}

/**
 * A presence test subtracts the 1 of an attribute. API servers subtract it for a conditional too, which did not add it.
 */
function withoutOneCost(run: Run): Run {
  return (frame) => {
    const value = run(frame);
    frame.cost -= 1;
    return value;
  };
}

/** An operand that is not a variable, without the attribute's cost of 1. */
function runOperand(operand: Run, ownCost: 0 | 1): Run {
  return ownCost === 0
    ? operand
    : (frame) => {
        frame.cost += ownCost;
        return operand(frame);
      };
}

function isOptionalChain(of: Attribute): boolean {
  return of.qualifiers.some(({ isOptional }) => isOptional) && of.qualifiers.at(-1)?.isTest === false;
}

function asOptional(raw: RawRun): Run {
  return (frame) => {
    const value = raw(frame);
    if (value === undefined) {
      return CelOptional.NONE;
    }
    return value instanceof EvaluationFailure ? value : new CelOptional(value);
  };
}

function runSlot(slot: number, ownCost: 0 | 1): Run {
  return (frame) => {
    frame.cost += ownCost;
    return frame.slots[slot] ?? null;
  };
}

function runRoot(root: Exclude<AttributeRoot, { kind: 'conditional' }>): Run {
  if (root.kind === 'operand') {
    return root.run;
  }
  const { slot } = root;
  return (frame) => frame.slots[slot] ?? null;
}

function runConditional(root: Extract<AttributeRoot, { kind: 'conditional' }>): Run {
  const { condition, id } = root;
  const truthy = runAttribute(root.truthy, 0);
  const falsy = runAttribute(root.falsy, 0);
  return (frame) => {
    const decision = condition(frame);
    if (decision === true) {
      return truthy(frame);
    }
    if (decision === false) {
      return falsy(frame);
    }
    return failureOf(decision, id);
  };
}

/** The failure in a value, or "no such overload" for a value that is not a condition, located at this id. */
export function failureOf(value: CelResult, id?: number): EvaluationFailure {
  return value instanceof EvaluationFailure ? value : new EvaluationFailure(NO_SUCH_OVERLOAD, id);
}

/** Sets the expression id of a failure. */
export function located(result: CelResult, id: number): CelResult {
  if (typeof result === 'object' && result instanceof EvaluationFailure) {
    result.expressionId ??= id;
  }
  return result;
}

function runQualified(of: Attribute, root: Run, ownCost: 0 | 1): RawRun {
  const names = plainNames(of.qualifiers);
  if (names === undefined) {
    return runGeneral(of, root, ownCost);
  }
  if (isOptionalChain(of)) {
    return runOptionalNames(of, root, ownCost, names);
  }
  if (of.root.kind !== 'slot' || of.qualifiers.some(({ isOptional }) => isOptional)) {
    return runGeneral(of, root, ownCost);
  }
  const { slot } = of.root;
  const general = applyQualifiers(of.qualifiers);
  const isTest = of.qualifiers.at(-1)?.isTest === true;
  return isTest ? runSlotTest(slot, names, general) : runSlotNames(slot, names, ownCost, general);
}

/** The selected names, if all are plain names. */
function plainNames(qualifiers: readonly Qualifier[]): readonly string[] | undefined {
  const names: string[] = [];
  for (const { key, compute } of qualifiers) {
    if (compute !== undefined || typeof key !== 'string' || !isPlainName(key)) {
      return undefined;
    }
    names.push(key);
  }
  return names;
}

type Apply = (frame: Frame, root: CelResult) => CelResult | undefined;

/** The most frequent case: fields of a variable. Restarts with the general implementation for other values. */
function runSlotNames(slot: number, names: readonly string[], ownCost: 0 | 1, general: Apply): RawRun {
  const [first = '', second = ''] = names;
  const fullCost = ownCost + names.length;
  const fallBack: Apply = (frame, root) => {
    frame.cost += ownCost;
    return general(frame, root);
  };
  switch (names.length) {
    case 1:
      return (frame) => {
        const root = frame.slots[slot] ?? null;
        const value = plainField(root, first);
        if (value === undefined) {
          return fallBack(frame, root);
        }
        frame.cost += fullCost;
        return value;
      };
    case 2:
      return (frame) => {
        const root = frame.slots[slot] ?? null;
        const value = plainField(plainField(root, first) ?? null, second);
        if (value === undefined) {
          return fallBack(frame, root);
        }
        frame.cost += fullCost;
        return value;
      };
    default:
      return (frame) => {
        const root = frame.slots[slot] ?? null;
        let value: CelResult | undefined = root;
        for (let index = 0; index < names.length && value !== undefined; index++) {
          value = plainField(value, names[index] ?? '');
        }
        if (value === undefined) {
          return fallBack(frame, root);
        }
        frame.cost += fullCost;
        return value;
      };
  }
}

/** `has` of a variable's field: the test itself costs nothing. */
function runSlotTest(slot: number, names: readonly string[], general: Apply): RawRun {
  const field = names.at(-1) ?? '';
  const path = names.slice(0, -1);
  const [first = ''] = path;
  // The selection counts 1, and the test subtracts the attribute's own 1.
  const fullCost = path.length + 1;
  const test = (frame: Frame, root: CelResult, holder: CelResult | undefined): CelResult | undefined => {
    if (typeof holder === 'object' && holder !== null && !(holder instanceof CelBoxed) && !Array.isArray(holder)) {
      frame.cost += fullCost;
      return plainField(holder, field) !== undefined;
    }
    return general(frame, root);
  };
  switch (path.length) {
    case 0:
      return (frame) => {
        const root = frame.slots[slot] ?? null;
        return test(frame, root, root);
      };
    case 1:
      return (frame) => {
        const root = frame.slots[slot] ?? null;
        return test(frame, root, plainField(root, first));
      };
    default:
      return (frame) => {
        const root = frame.slots[slot] ?? null;
        let holder: CelResult | undefined = root;
        for (let index = 0; index < path.length && holder !== undefined; index++) {
          holder = plainField(holder, path[index] ?? '');
        }
        return test(frame, root, holder);
      };
  }
}

/** Fields with optional selections: `object.spec.?securityContext.?runAsUser`. */
function runOptionalNames(of: Attribute, root: Run, ownCost: 0 | 1, names: readonly string[]): RawRun {
  const general = applyQualifiers(of.qualifiers);
  const firstOptional = of.qualifiers.findIndex(({ isOptional }) => isOptional);
  return (frame) => {
    const start = root(frame);
    frame.cost += ownCost;
    let value: CelResult | undefined = start;
    for (let index = 0; index < names.length; index++) {
      const next: CelValue | undefined = plainField(value, names[index] ?? '');
      if (next === undefined) {
        if (index < firstOptional || !isPlainContainer(value)) {
          return general(frame, start);
        }
        frame.cost += index;
        return undefined;
      }
      value = next;
    }
    frame.cost += names.length;
    return value;
  };
}

/** Whether an undefined property of a value is certainly absent, without another way of lookup. */
function isPlainContainer(value: CelResult): boolean {
  return value === null || (typeof value === 'object' && !(value instanceof CelBoxed) && !Array.isArray(value));
}

function runGeneral(of: Attribute, root: Run, ownCost: 0 | 1): RawRun {
  const apply = applyQualifiers(of.qualifiers);
  const baseCost = of.qualifiers.at(-1)?.isTest === true ? 0 : ownCost;
  return (frame) => {
    const start = root(frame);
    frame.cost += baseCost;
    return apply(frame, start);
  };
}

/** Applies selections one by one. */
function applyQualifiers(qualifiers: readonly Qualifier[]): Apply {
  const isTest = qualifiers.at(-1)?.isTest === true;
  const isRaw = !isTest && qualifiers.some(({ isOptional }) => isOptional);
  return (frame, root) => {
    if (root instanceof EvaluationFailure) {
      return root;
    }
    let value: CelValue = root;
    let isOptional = false;
    if (root instanceof CelOptional) {
      if (root.value === undefined) {
        return absent(isTest, isRaw);
      }
      value = root.value;
      isOptional = true;
    }
    for (const qualifier of qualifiers) {
      isOptional ||= qualifier.isOptional;
      const next = qualify(frame, value, qualifier, isOptional);
      if (next === undefined) {
        return absent(isTest, isRaw);
      }
      if (next instanceof EvaluationFailure) {
        next.expressionId ??= qualifier.id;
        return next;
      }
      if (qualifier.isTest) {
        return next;
      }
      value = next;
    }
    return isOptional && !isRaw ? new CelOptional(value) : value;
  };
}

function absent(isTest: boolean, isRaw: boolean): CelResult | undefined {
  if (isTest) {
    return false;
  }
  return isRaw ? undefined : CelOptional.NONE;
}

/** Applies one selection; undefined if the value is absent and optional. */
function qualify(frame: Frame, value: CelValue, qualifier: Qualifier, isOptional: boolean): CelResult | undefined {
  const key = qualifier.compute === undefined ? qualifier.key : qualifier.compute(frame);
  if (key instanceof EvaluationFailure || !isQualifier(key)) {
    frame.cost += Number(!isOptional);
    return key instanceof EvaluationFailure ? key : new EvaluationFailure(`invalid qualifier type: ${goTypeOf(key)}`);
  }
  if (qualifier.isTest) {
    frame.cost += 1;
    return hasField(value, key);
  }
  const found = lookup(value, key);
  if (!isOptional) {
    frame.cost += 1;
    return found === undefined ? missing(value, key) : found;
  }
  frame.cost += Number(found !== undefined && !(found instanceof EvaluationFailure));
  return found;
}
