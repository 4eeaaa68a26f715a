// Runs the validation rules of a schema (`x-kubernetes-validations`) like API servers (apiextensions, `schema/cel`).
import {
  Cancellation,
  EvaluationFailure,
  EXPRESSION_COST_LIMIT,
  POLICY_COST_BUDGET,
  CelOptional,
} from '../../cel/index.ts';
import type { Bindings, CelResult, Program } from '../../cel/index.ts';
import { duplicate, forbidden, invalid, required } from '../field-error.ts';
import type { FieldError } from '../field-error.ts';
import { isJsonObject, own } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import type { Schema, ValidationRule } from '../schema.ts';
import type { Correlation } from './correlation.ts';
import { ListItems } from './correlation.ts';
import { pathOfField } from './field-path.ts';
import { additionalOf, MAX_NESTING, propertyOf } from './schema-fields.ts';
import { RuleCompiler } from './rule-programs.ts';
import type { CompiledRule } from './rule-programs.ts';
import { inOrderOf, RuleValues } from './rule-values.ts';
import { NO_PATH } from './schema-result.ts';

/** Maximum size of a message from an expression, in bytes (apiserver, `MaxEvaluatedMessageExpressionSizeBytes`). */
const MAX_MESSAGE_BYTES = 5 * 1024;

/** The relation to the old value: unchanged mistakes are ignored (KEP-4008). */
interface Before {
  readonly current: Correlation | undefined;
  /** The nearest enclosing value that has an old value. */
  readonly around: Correlation | undefined;
}

/** The rules of a schema and its children, compiled on first use. */
export class SchemaRules {
  readonly #schema: Schema;
  /** The schema with the rules, which differs from that with the type within an `allOf`. */
  readonly #rulesAt: Schema;
  readonly #isResource: boolean;
  readonly #values: RuleValues;
  #compiled: readonly CompiledRule[] | undefined;
  readonly #items: SchemaRules | undefined;
  readonly #additional: SchemaRules | undefined;
  readonly #properties = new Map<string, SchemaRules>();
  readonly #allOf: readonly SchemaRules[];

  private constructor(rulesAt: Schema, schema: Schema, isResource: boolean, values: RuleValues) {
    this.#schema = schema;
    this.#rulesAt = rulesAt;
    this.#isResource = isResource;
    this.#values = values;
    const make = (at: Schema | undefined, node: Schema | undefined): SchemaRules | undefined =>
      at === undefined || node === undefined
        ? undefined
        : SchemaRules.#of(at, node, node['x-kubernetes-embedded-resource'] === true, values);
    this.#items = make(rulesAt.items, schema.items);
    this.#additional = make(additionalOf(rulesAt), additionalOf(schema));
    for (const [name, property] of Object.entries(rulesAt.properties ?? {})) {
      const rules = make(property, propertyOf(schema, name));
      if (rules !== undefined) {
        this.#properties.set(name, rules);
      }
    }
    this.#allOf = (rulesAt.allOf ?? []).flatMap((one) => SchemaRules.#of(one, schema, isResource, values) ?? []);
  }

  /** The rules for whole objects of a schema; undefined without rules. */
  static of(schema: Schema): SchemaRules | undefined {
    return SchemaRules.#of(schema, schema, true, new RuleValues());
  }

  static #of(rulesAt: Schema, schema: Schema, isResource: boolean, values: RuleValues): SchemaRules | undefined {
    return hasRules(rulesAt, []) ? new SchemaRules(rulesAt, schema, isResource, values) : undefined;
  }

  /** Errors of an object by its rules. */
  errors(object: JsonValue, old: JsonValue | undefined, correlation: Correlation | undefined): FieldError[] {
    const run: RuleRun = { errors: [], budget: POLICY_COST_BUDGET, isEnded: false };
    this.#run(run, object, old, '', { current: correlation, around: undefined }, 0);
    return run.errors;
  }

  #run(run: RuleRun, value: JsonValue, old: JsonValue | undefined, path: string, before: Before, depth: number): void {
    if (value === null || run.isEnded || depth > MAX_NESTING) {
      return;
    }
    this.#runOwn(run, value, old ?? undefined, path, before);
    for (const rules of this.#allOf) {
      rules.#run(run, value, old, path, { current: undefined, around: before.around }, depth + 1);
    }
    if (Array.isArray(value)) {
      this.#runElements(run, value, old, path, before, depth);
    } else if (isJsonObject(value)) {
      this.#runFields(run, value, old, path, before, depth);
    }
  }

  #runElements(
    run: RuleRun,
    list: readonly JsonValue[],
    old: JsonValue | undefined,
    path: string,
    before: Before,
    depth: number,
  ): void {
    const items = this.#items;
    if (items === undefined) {
      return;
    }
    const oldItems = Array.isArray(old) ? ListItems.of(old, this.#schema) : undefined;
    for (const [index, element] of list.entries()) {
      const next: Before =
        before.current === undefined ? before : { current: before.current.element(index), around: before.current };
      items.#run(run, element, oldItems?.find(element), `${path}[${index}]`, next, depth + 1);
    }
  }

  #runFields(
    run: RuleRun,
    object: JsonObject,
    old: JsonValue | undefined,
    path: string,
    before: Before,
    depth: number,
  ): void {
    for (const name of Object.keys(object)) {
      const property = this.#properties.get(name);
      const rules = property ?? this.#additional;
      if (rules !== undefined) {
        const childPath = property === undefined ? `${path}[${name}]` : pathOfField(path, name);
        const oldChild = isJsonObject(old) ? own(old, name) : undefined;
        rules.#run(run, own(object, name) ?? null, oldChild, childPath, fieldBefore(before, name), depth + 1);
      }
    }
  }

  #runOwn(run: RuleRun, value: JsonValue, old: JsonValue | undefined, path: string, before: Before): void {
    const rules = this.#rulesAt['x-kubernetes-validations'] ?? [];
    if (rules.length === 0) {
      return;
    }
    if (run.budget <= 0) {
      this.#end(run, path, OUT_OF_BUDGET);
      return;
    }
    const compiled = this.#compile(rules);
    const isTransition = compiled.some((one) => one.isTransition);
    const self = this.#values.of(value, this.#schema);
    const oldSelf =
      old === undefined || !isTransition
        ? undefined
        : this.#values.of(inOrderOf(old, value, this.#schema), this.#schema);
    for (const rule of compiled) {
      if (!run.isEnded && (!rule.isTransition || old !== undefined || rule.rule.optionalOldSelf === true)) {
        this.#runRule(run, rule, bindingsOf(rule, self, oldSelf), path, before);
      }
    }
  }

  #runRule(run: RuleRun, compiled: CompiledRule, bindings: Bindings, path: string, before: Before): void {
    const { rule, program, error } = compiled;
    const type = this.#schema.type ?? '';
    if (error !== undefined) {
      run.errors.push(invalid(fieldOr(path), type, `rule compile error: ${error}`));
      return;
    }
    if (program === undefined) {
      return;
    }
    const { value, cost } = program.run(bindings, { budget: EXPRESSION_COST_LIMIT });
    if (cost > run.budget) {
      this.#end(run, path, OUT_OF_BUDGET);
      return;
    }
    run.budget -= cost;
    if (value instanceof Cancellation) {
      const why = `'${value.message}': no further validation rules will be run due to call cost exceeds limit for rule: ${ruleText(rule)}`;
      this.#end(run, path, why);
    } else if (value instanceof EvaluationFailure) {
      run.errors.push(invalid(fieldOr(path), type, failureText(value, rule)));
    } else if (value !== true && (compiled.isTransition || !isForgiven(before))) {
      this.#refuse(run, compiled, bindings, path);
    }
  }

  /** Reports that a rule failed. */
  #refuse(run: RuleRun, { rule, message, fieldPath }: CompiledRule, bindings: Bindings, path: string): void {
    const type = this.#schema.type ?? '';
    const place = fieldPath === '' ? path : pathOfField(path, fieldPath);
    const text = message === undefined ? undefined : this.#messageText(run, message, rule, bindings, place);
    if (run.isEnded) {
      return;
    }
    const detail = text ?? ruleMessage(rule);
    switch (rule.reason) {
      case 'FieldValueForbidden':
        run.errors.push(forbidden(fieldOr(place), detail));
        break;
      case 'FieldValueRequired':
        run.errors.push(required(fieldOr(place), detail));
        break;
      case 'FieldValueDuplicate':
        run.errors.push(duplicate(fieldOr(place), type));
        break;
      default:
        run.errors.push(invalid(fieldOr(place), type, detail));
    }
  }

  /** The result of a message expression; undefined when it is no valid message. */
  #messageText(
    run: RuleRun,
    program: Program,
    rule: ValidationRule,
    bindings: Bindings,
    place: string,
  ): string | undefined {
    const { value, cost } = program.run(bindings, { budget: EXPRESSION_COST_LIMIT });
    if (cost > run.budget) {
      this.#end(
        run,
        place,
        `messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run`,
      );
      return undefined;
    }
    if (value instanceof Cancellation) {
      this.#end(
        run,
        place,
        `no further validation rules will be run due to call cost exceeds limit for messageExpression: ${JSON.stringify(rule.messageExpression)}`,
      );
      return undefined;
    }
    run.budget -= cost;
    const text = typeof value === 'string' ? value.trim() : '';
    return text === '' || text.includes('\n') || Buffer.byteLength(text) > MAX_MESSAGE_BYTES ? undefined : text;
  }

  #end(run: RuleRun, path: string, why: string): void {
    run.errors.push(invalid(fieldOr(path), this.#schema.type ?? '', why));
    run.isEnded = true;
  }

  #compile(rules: readonly ValidationRule[]): readonly CompiledRule[] {
    if (this.#compiled === undefined) {
      const compiler = new RuleCompiler(this.#schema, this.#isResource);
      // As in API servers, values that expressions cannot access have no rules.
      this.#compiled = compiler.isVisible ? rules.map((rule) => compiler.compile(rule)) : [];
    }
    return this.#compiled;
  }
}

const OUT_OF_BUDGET = 'validation failed due to running out of cost budget, no further validation rules will be run';

interface RuleRun {
  readonly errors: FieldError[];
  /** Remaining cost budget. */
  budget: number;
  isEnded: boolean;
}

function bindingsOf({ rule }: CompiledRule, self: CelResult, oldSelf: CelResult | undefined): Bindings {
  if (rule.optionalOldSelf !== true) {
    return oldSelf === undefined ? { self } : { self, oldSelf };
  }
  const optional =
    oldSelf === undefined
      ? CelOptional.NONE
      : oldSelf instanceof EvaluationFailure
        ? oldSelf
        : new CelOptional(oldSelf);
  return { self, oldSelf: optional };
}

function fieldBefore(before: Before, name: string): Before {
  const { current, around } = before;
  if (current === undefined) {
    return before;
  }
  return around === undefined && (name === 'apiVersion' || name === 'kind')
    ? { current: undefined, around: undefined }
    : { current: current.field(name), around: current };
}

function isForgiven({ current, around }: Before): boolean {
  return (current ?? around)?.isUnchanged === true;
}

function failureText({ message }: EvaluationFailure, rule: ValidationRule): string {
  return message.startsWith('no such overload')
    ? `'${message}': call arguments did not match a supported operator, function or macro signature for rule: ${ruleText(rule)}`
    : `${message} evaluating rule: ${ruleText(rule)}`;
}

function ruleText({ message = '', rule }: ValidationRule): string {
  return message === '' ? rule.trim() : message.trim();
}

function ruleMessage(rule: ValidationRule): string {
  return (rule.message ?? '') === '' ? `failed rule: ${ruleText(rule)}` : ruleText(rule);
}

function fieldOr(path: string): string {
  return path === '' ? NO_PATH : path;
}

/** Whether a schema or one of its children has rules. `around`: enclosing schemas, which are skipped. */
function hasRules(schema: Schema, around: readonly Schema[]): boolean {
  if ((schema['x-kubernetes-validations'] ?? []).length > 0) {
    return true;
  }
  if (around.includes(schema) || around.length > MAX_NESTING) {
    return false;
  }
  const within = [...around, schema];
  const additional = additionalOf(schema);
  return [
    ...(schema.items === undefined ? [] : [schema.items]),
    ...(additional === undefined ? [] : [additional]),
    ...Object.values(schema.properties ?? {}),
    ...(schema.allOf ?? []),
  ].some((child) => hasRules(child, within));
}
