import { jsonText } from '../../../go/index.ts';
import { SCHEMA_COST_LIMIT, SCHEMA_RULE_COST_LIMIT } from '../../../cel/index.ts';
import { addErrors, forbidden, invalid, invalidText, notSupported, required } from '../../../resources/index.ts';
import type { FieldError, Schema, ValidationRule } from '../../../resources/index.ts';
import { additionalOf, parseFieldPath, RuleCompiler } from '../../../resources/validation/index.ts';
import type { CompiledRule } from '../../../resources/validation/index.ts';

const REASONS = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'];

/** When the total cost is too high, rules are reported whose cost is at least this share of the limit. */
const EXPENSIVE_SHARE = 0.01;
/** Maximum number of these rules. */
const MAX_LISTED = 4;

/** The position of a schema node, as its rules see it. */
interface NodePosition {
  /** Maximum number of values that the node describes in one object; undefined when unbounded. */
  readonly count: number | undefined;
  /** The path of the enclosing list that has no keys. Its elements cannot be compared with those of the old object. */
  readonly uncorrelated: string | undefined;
  readonly isResource: boolean;
}

/** Validates the CEL rules of a schema: they must compile, within the cost budget. */
export class RuleDeclarations {
  readonly #errors: FieldError[] = [];
  readonly #expensive: { readonly field: string; readonly cost: number }[] = [];
  #cost = 0;

  check(schema: Schema, path: string): FieldError[] {
    this.#node(schema, path, { count: 1, uncorrelated: undefined, isResource: true });
    if (this.#cost > SCHEMA_COST_LIMIT) {
      const listed = this.#expensive.toSorted((left, right) => right.cost - left.cost).slice(0, MAX_LISTED);
      const why = 'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema';
      this.#errors.push(...listed.map(({ field }) => forbidden(field, why)));
      const what = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema';
      this.#errors.push(forbidden(path, costText(what, this.#cost, SCHEMA_COST_LIMIT)));
    }
    return this.#errors;
  }

  #node(schema: Schema, path: string, position: NodePosition): void {
    const rules = schema['x-kubernetes-validations'] ?? [];
    if (rules.length > 0) {
      this.#rules(rules, schema, `${path}.x-kubernetes-validations`, position);
    }
    const { items } = schema;
    if (items !== undefined) {
      const isCorrelated = schema['x-kubernetes-list-type'] === 'map';
      this.#node(items, `${path}.items`, {
        count: times(position.count, schema.maxItems),
        uncorrelated: position.uncorrelated ?? (isCorrelated ? undefined : path),
        isResource: items['x-kubernetes-embedded-resource'] === true,
      });
    }
    const additional = additionalOf(schema);
    if (additional !== undefined) {
      const count = times(position.count, schema.maxProperties);
      this.#node(additional, `${path}.additionalProperties`, { ...position, count, isResource: false });
    }
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const isResource = property['x-kubernetes-embedded-resource'] === true;
      this.#node(property, `${path}.properties[${name}]`, { ...position, isResource });
    }
  }

  #rules(rules: readonly ValidationRule[], schema: Schema, path: string, position: NodePosition): void {
    const wrong = rules.flatMap((rule, index) => declarationErrors(rule, schema, `${path}[${index}]`));
    if (wrong.length > 0) {
      addErrors(this.#errors, wrong);
      return;
    }
    const compiler = new RuleCompiler(schema, position.isResource);
    for (const [index, rule] of compiler.isVisible ? rules.entries() : []) {
      this.#compiled(compiler.compile(rule), compiler, `${path}[${index}]`, position);
    }
  }

  #compiled(compiled: CompiledRule, compiler: RuleCompiler, path: string, position: NodePosition): void {
    const { rule, error, messageError, program, message } = compiled;
    if (program !== undefined) {
      const cost = program.estimate.max * (position.count ?? compiler.mostInRequest);
      this.#observe('estimated rule cost', cost, `${path}.rule`);
    }
    if (error !== undefined) {
      this.#errors.push(invalidText(`${path}.rule`, printedRule(rule), error));
    }
    if (messageError !== undefined) {
      this.#errors.push(invalidText(`${path}.messageExpression`, printedRule(rule), messageError));
    } else if (message !== undefined) {
      this.#observe('estimated messageExpression cost', message.estimate.max, `${path}.messageExpression`);
    }
    if (compiled.isTransition && position.uncorrelated !== undefined) {
      const why = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${position.uncorrelated}`;
      this.#errors.push(invalid(`${path}.rule`, rule.rule, why));
    } else if (!compiled.isTransition && rule.optionalOldSelf !== undefined) {
      const why = 'may not be set if oldSelf is not used in rule';
      this.#errors.push(invalid(`${path}.optionalOldSelf`, rule.optionalOldSelf, why));
    }
  }

  #observe(what: string, cost: number, field: string): void {
    if (cost > SCHEMA_RULE_COST_LIMIT) {
      this.#errors.push(forbidden(field, costText(what, cost, SCHEMA_RULE_COST_LIMIT)));
    }
    this.#cost += cost;
    if (cost >= SCHEMA_COST_LIMIT * EXPENSIVE_SHARE) {
      this.#expensive.push({ field, cost });
    }
  }
}

function declarationErrors(rule: ValidationRule, schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { message = '', messageExpression, fieldPath = '', reason } = rule;
  if (rule.rule.trim() === '') {
    errors.push(required(`${path}.rule`, 'rule is not specified'));
  } else if (message !== '' && message.trim() === '') {
    errors.push(invalid(`${path}.message`, message, 'must be non-empty if specified'));
  } else if (hasNewlines(message.trim())) {
    errors.push(invalid(`${path}.message`, message, 'must not contain line breaks'));
  } else if (hasNewlines(rule.rule.trim()) && message.trim() === '') {
    errors.push(required(`${path}.message`, 'message must be specified if rule contains line breaks'));
  }
  if (messageExpression !== undefined && messageExpression !== '' && messageExpression.trim() === '') {
    errors.push(required(`${path}.messageExpression`, 'messageExpression must be non-empty if specified'));
  }
  if (reason !== undefined && !REASONS.includes(reason)) {
    errors.push(notSupported(`${path}.reason`, reason, REASONS));
  }
  if (fieldPath !== '' && fieldPath.trim() === '') {
    errors.push(invalid(`${path}.fieldPath`, fieldPath, 'must be non-empty if specified'));
  }
  if (hasNewlines(fieldPath)) {
    errors.push(invalid(`${path}.fieldPath`, fieldPath, 'must not contain line breaks'));
  }
  if (fieldPath !== '' && typeof parseFieldPath(fieldPath, schema) === 'string') {
    errors.push(invalid(`${path}.fieldPath`, fieldPath, 'must be a valid path'));
  }
  return errors;
}

/** A rule in the format of API servers' messages. */
function printedRule(rule: ValidationRule): string {
  const parts: readonly (readonly [string, unknown])[] = [
    ['Rule', rule.rule],
    ['Message', rule.message ?? ''],
    ['MessageExpression', rule.messageExpression ?? ''],
    ['Reason', rule.reason ?? null],
    ['FieldPath', rule.fieldPath ?? ''],
    ['OptionalOldSelf', rule.optionalOldSelf ?? null],
  ];
  return `{${parts.map(([name, value]) => `"${name}":${jsonText(value)}`).join(',')}}`;
}

function times(count: number | undefined, most: number | undefined): number | undefined {
  return count === undefined || most === undefined ? undefined : count * Math.max(0, most);
}

function hasNewlines(text: string): boolean {
  return /[\n\r]/u.test(text);
}

function costText(what: string, cost: number, limit: number): string {
  const ratio = cost / limit;
  const factor = ratio > 100 ? 'more than 100x' : `${ratio.toFixed(ratio < 1.5 ? 6 : 1)}x`;
  const hint =
    'try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared';
  return `${what} exceeds budget by factor of ${factor} (${hint})`;
}
