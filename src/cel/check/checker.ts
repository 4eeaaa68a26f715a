import type {
  CallExpression,
  ComprehensionExpression,
  Expression,
  IdentifierExpression,
  ListExpression,
  MapExpression,
  SelectExpression,
  StructExpression,
} from '../model/ast.ts';
import { CelError } from '../model/errors.ts';
import type { CelIssue } from '../model/errors.ts';
import type { Overload } from '../model/library.ts';
import { MAX_ISSUES, Operator } from '../syntax/index.ts';
import type { ParsedExpression, Source } from '../syntax/index.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  DYN,
  INT,
  listOf,
  mapOf,
  NULL,
  optionalOf,
  parameter,
  STRING,
  UINT,
} from '../model/type.ts';
import type { CelType } from '../model/type.ts';
import { CelUint } from '../model/value.ts';
import type { CelValue } from '../model/value.ts';
import type { DeclaredFunction, DeclaredOverload, Declarations, Meaning } from './declarations.ts';
import { hintsForCall, hintsForField, hintsForFunction, hintsForIdentifier, hintsForIndex } from './hints.ts';
import { keyHint } from './key-hint.ts';
import { MAX_TYPE_PARTS } from './limits.ts';
import type { Message } from './messages.ts';
import { formatArguments, formatType } from '../syntax/type-text.ts';
import {
  countTypeParts,
  isDyn,
  isDynOrError,
  isSameType,
  mapType,
  optionalValueType,
  TypesTooLarge,
  Unification,
} from './unification.ts';

const ERROR: CelType = { kind: 'error' };

/** An expression with resolved names and types; types that are known only at run time are `dyn`. */
export interface CheckedExpression {
  readonly source: Source;
  /**
   * The expression, in which identifiers replace qualified names, and global calls replace calls of namespaced
   * functions.
   */
  readonly expression: Expression;
  /** Node ids are 1 to `nodeCount`. */
  readonly nodeCount: number;
  readonly resultType: CelType;
  /** Type of every node by id. */
  readonly types: readonly (CelType | undefined)[];
  /** Possible overloads by id of the call: several if types of arguments are `dyn`. */
  readonly overloads: ReadonlyMap<number, readonly Overload[]>;
  /** Identifiers that are not variables, by id: type names and constants. */
  readonly meanings: ReadonlyMap<number, Exclude<Meaning, { kind: 'variable' }>>;
}

/**
 * Checks an expression against declarations.
 * @throws CelError 'check-failed' with all errors
 */
export function check(parsed: ParsedExpression, declarations: Declarations): CheckedExpression {
  return new Checker(parsed, declarations).check();
}

/** The type of an expression, and its errors. */
export interface InferredType {
  /** Of what is wrong: `error`. */
  readonly type: CelType;
  /** As it was parsed. */
  readonly expression: Expression;
  readonly issues: readonly CelIssue[];
}

/** The type that an expression has in spite of errors in its parts. */
export function inferType(parsed: ParsedExpression, declarations: Declarations): InferredType {
  return new Checker(parsed, declarations).infer();
}

/** Thrown to stop checking early. */
class CheckingStopped extends Error {}

interface Variable {
  readonly name: string;
  readonly type: CelType;
}

class Checker {
  readonly #parsed: ParsedExpression;
  readonly #declarations: Declarations;
  readonly #unification: Unification;
  readonly #types: (CelType | undefined)[] = [];
  readonly #overloads = new Map<number, readonly Overload[]>();
  readonly #meanings = new Map<number, Exclude<Meaning, { kind: 'variable' }>>();
  readonly #issues: CelIssue[] = [];
  /** Variables of the macros around the current expression, innermost last. */
  readonly #locals: Variable[] = [];
  #freeVariables = 0;

  constructor(parsed: ParsedExpression, declarations: Declarations) {
    this.#parsed = parsed;
    this.#declarations = declarations;
    this.#unification = new Unification(declarations.types?.json);
  }

  check(): CheckedExpression {
    const expression = this.#checkAll();
    if (expression === undefined || this.#issues.length > 0) {
      throw CelError.ofIssues('check-failed', this.#issues);
    }
    const { source, nodeCount } = this.#parsed;
    return {
      source,
      expression,
      nodeCount,
      resultType: this.#typeAt(expression),
      types: this.#types,
      overloads: this.#overloads,
      meanings: this.#meanings,
    };
  }

  infer(): InferredType {
    const expression = this.#checkAll();
    const type = expression === undefined ? ERROR : this.#typeAt(expression);
    return { type, expression: this.#parsed.expression, issues: this.#issues };
  }

  #checkAll(): Expression | undefined {
    try {
      const expression = this.#check(this.#parsed.expression);
      this.#substituteAll();
      return expression;
    } catch (error) {
      if (error instanceof TypesTooLarge) {
        this.#report(this.#parsed.expression, 'the types of the expression are too large to be compared');
      } else if (!(error instanceof CheckingStopped)) {
        throw error;
      }
      return undefined;
    }
  }

  /** Substitutes type variables; those that are still free become `dyn`. */
  #substituteAll(): void {
    const types = this.#types;
    for (let id = 1; id < types.length; id += 1) {
      const type = types[id];
      if (type !== undefined) {
        types[id] = this.#unification.substitute(type, true);
      }
    }
  }

  #check(node: Expression): Expression {
    switch (node.kind) {
      case 'literal':
        this.#setType(node, typeOfLiteral(node.value));
        return node;
      case 'identifier':
        return this.#checkIdentifier(node);
      case 'select':
        return this.#checkSelect(node);
      case 'call':
        return this.#checkCall(node);
      case 'list':
        return this.#checkList(node);
      case 'map':
        return this.#checkMap(node);
      case 'struct':
        return this.#checkStruct(node);
      default:
        return this.#checkComprehension(node);
    }
  }

  #checkEach(nodes: readonly Expression[]): readonly Expression[] {
    let changed: Expression[] | undefined;
    for (const [index, node] of nodes.entries()) {
      const checked = this.#check(node);
      if (checked !== node) {
        changed ??= nodes.slice();
        changed[index] = checked;
      }
    }
    return changed ?? nodes;
  }

  // --- names -------------------------------------------------------------------------------------------------------

  #checkIdentifier(node: IdentifierExpression): Expression {
    const found = this.#lookUp(node.name);
    if (found === undefined) {
      const key = keyHint(this.#parsed.source.text, node.start);
      const hints = key?.isCertain === true ? [] : hintsForIdentifier(node.name, this.#declarations, this.#locals);
      this.#undeclared(node, node.name, key === undefined ? hints : [key.hint, ...hints]);
      return node;
    }
    return this.#resolveTo(node, found);
  }

  #lookUp(name: string): Meaning | undefined {
    for (let index = this.#locals.length - 1; index >= 0; index -= 1) {
      const local = this.#locals[index];
      if (local !== undefined && local.name === name) {
        return { kind: 'variable', name, type: local.type };
      }
    }
    return this.#declarations.findIdentifier(name);
  }

  /** The identifier that replaces a qualified name. */
  #resolveTo(node: IdentifierExpression | SelectExpression, meaning: Meaning): Expression {
    this.#setType(node, meaning.type);
    if (meaning.kind !== 'variable') {
      this.#meanings.set(node.id, meaning);
    }
    const isHidden = !isLocal(this.#locals, nameOf(node)) && isLocal(this.#locals, meaning.name);
    const name = isHidden ? `.${meaning.name}` : meaning.name;
    if (node.kind === 'identifier' && node.name === name) {
      return node;
    }
    const { id, start, end, position } = node;
    return { kind: 'identifier', id, start, end, position, name };
  }

  #checkSelect(node: SelectExpression): Expression {
    const qualified = this.#qualifiedName(node);
    // Fields of an iteration variable take precedence over declared names with dots.
    if (qualified !== undefined && !isLocal(this.#locals, qualified.slice(0, qualified.indexOf('.')))) {
      const found = this.#lookUp(qualified);
      if (found !== undefined) {
        return this.#resolveTo(node, found);
      }
    }
    const operand = this.#check(node.operand);
    const type = this.#fieldType(node, node.operand, node.field, false);
    this.#setType(node, node.isTest ? BOOL : this.#unification.substitute(type));
    return operand === node.operand ? node : { ...node, operand };
  }

  /** The dotted name that selections from an identifier form, if names with its first word are declared. */
  #qualifiedName(node: Expression): string | undefined {
    const fields: string[] = [];
    let current = node;
    while (current.kind === 'select' && !current.isTest) {
      fields.push(current.field);
      current = current.operand;
    }
    if (current.kind !== 'identifier' || !this.#declarations.mayQualify(current.name)) {
      return undefined;
    }

    return [current.name, ...fields.toReversed()].join('.');
  }

  #fieldType(node: Expression, operand: Expression, field: string, isOptional: boolean): CelType {
    const operandType = this.#typeOf(operand);
    const inner = optionalValueType(operandType);
    const type = this.#fieldTypeIn(node, inner ?? operandType, field);
    return isOptional || inner !== undefined ? optionalOf(type) : type;
  }

  #fieldTypeIn(node: Expression, type: CelType, field: string): CelType {
    switch (type.kind) {
      case 'map':
        return type.value;
      case 'struct':
        return this.#structFieldType(node, type.name, field) ?? ERROR;
      case 'parameter':
        // Binds a type variable, so that a later use cannot give it another type.
        this.#unification.isAssignable(DYN, type);
        return DYN;
      default:
        if (!isDynOrError(type)) {
          this.#report(node, `type '${formatType(type)}' does not support field selection`);
        }
        // The type of JSON that follows an error stays unknown, so that the other branch of a conditional decides.
        return type.kind === 'error' && this.#declarations.types?.json !== undefined ? ERROR : DYN;
    }
  }

  #structFieldType(
    at: { position: number; end: number; id: number },
    struct: string,
    field: string,
  ): CelType | undefined {
    const { types } = this.#declarations;
    if (types?.findStruct(struct) === undefined) {
      this.#report(at, `unexpected failed resolution of '${struct}'`);
      return undefined;
    }
    const type = types.fieldType(struct, field);
    if (type === undefined) {
      this.#report(at, `undefined field '${field}'`, hintsForField(field, struct, types));
    }
    return type;
  }

  // --- calls -------------------------------------------------------------------------------------------------------

  #checkCall(node: CallExpression): Expression {
    if (node.function === Operator.OptionalSelect) {
      return this.#checkOptionalSelect(node);
    }
    const args = this.#checkEach(node.args);
    if (node.target === undefined) {
      return this.#checkFunction(node, node.function, args);
    }
    const prefix = this.#qualifiedName(node.target);
    if (prefix !== undefined && this.#declarations.findFunction(`${prefix}.${node.function}`) !== undefined) {
      return this.#checkFunction(node, `${prefix}.${node.function}`, args);
    }
    const target = this.#check(node.target);
    const found = this.#declarations.findFunction(node.function);
    if (found === undefined) {
      const hints =
        prefix === undefined ? [] : hintsForFunction(`${prefix}.${node.function}`, this.#declarations, node);
      const all = hints.length > 0 ? hints : hintsForFunction(node.function, this.#declarations, node);
      this.#undeclared(node, node.function, all);
    } else {
      this.#resolveCall(node, found, [node.target, ...node.args], true);
    }
    return target === node.target && args === node.args ? node : { ...node, target, args };
  }

  #checkOptionalSelect(node: CallExpression): Expression {
    const [operand, field] = node.args;
    if (operand === undefined || field?.kind !== 'literal' || typeof field.value !== 'string') {
      throw new TypeError('the parser makes optional selections of an operand and the name of a field');
    }
    const checked = this.#check(operand);
    this.#setType(field, STRING);
    const type = this.#fieldType(node, operand, field.value, true);
    this.#setType(node, this.#unification.substitute(type));
    return checked === operand ? node : { ...node, args: [checked, field] };
  }

  #checkFunction(node: CallExpression, name: string, args: readonly Expression[]): Expression {
    const found = this.#declarations.findFunction(name);
    if (found === undefined) {
      this.#undeclared(node, name, hintsForFunction(name, this.#declarations, node));
      return args === node.args ? node : { ...node, args };
    }
    this.#resolveCall(node, found, node.args, false);
    const isSame = args === node.args && found.name === node.function && node.target === undefined;
    return isSame ? node : { ...node, function: found.name, target: undefined, args };
  }

  /** Finds the overloads that accept the arguments (receiver first), and the result type. */
  #resolveCall(node: CallExpression, declared: DeclaredFunction, args: readonly Expression[], isMember: boolean): void {
    if (declared.name === Operator.LogicalAnd || declared.name === Operator.LogicalOr) {
      this.#resolveLogical(node, declared, args);
      return;
    }
    if (declared.name === Operator.Conditional && this.#declarations.types?.json !== undefined) {
      this.#resolveConditional(node, declared, args);
      return;
    }
    const argTypes = args.map((arg) => this.#typeAt(arg));
    if (declared.name === Operator.Index || declared.name === Operator.OptionalIndex) {
      const object = this.#indexedObject(argTypes);
      if (object !== undefined) {
        this.#noMatchingOverload(node, declared, argTypes, isMember, this.#hintsForIndex(object, args[1]));
        return;
      }
    }
    const candidates: Overload[] = [];
    let result: CelType | undefined;
    for (const candidate of declared.overloads) {
      if (candidate.overload.isMember !== isMember || candidate.overload.parameters.length !== argTypes.length) {
        continue;
      }
      const { parameters, result: resultType } = this.#instantiate(candidate);
      if (this.#unification.areAssignable(argTypes, parameters)) {
        candidates.push(candidate.overload);
        const type = this.#unification.substitute(resultType);
        result = result === undefined || isSameType(type, result) ? type : DYN;
      }
    }
    if (result === undefined) {
      this.#noMatchingOverload(node, declared, argTypes, isMember);
      return;
    }
    this.#overloads.set(node.id, candidates);
    this.#setType(node, result);
  }

  #resolveLogical(node: CallExpression, declared: DeclaredFunction, args: readonly Expression[]): void {
    let isBoolean = true;
    for (const arg of args) {
      const type = this.#typeAt(arg);
      if (!this.#unification.isAssignable(type, BOOL)) {
        this.#mismatch(arg, BOOL, type);
        isBoolean = false;
      }
    }
    this.#setType(node, isBoolean ? BOOL : ERROR);
    this.#overloads.set(
      node.id,
      declared.overloads.map(({ overload }) => overload),
    );
  }

  /** Of JSON values: evaluation needs no common type of the branches. */
  #resolveConditional(node: CallExpression, declared: DeclaredFunction, args: readonly Expression[]): void {
    const [condition, yes, no] = args;
    if (condition === undefined || yes === undefined || no === undefined) {
      return;
    }
    this.#assertType(condition, BOOL);
    this.#setType(node, this.#join(this.#typeAt(yes), this.#typeAt(no)));
    this.#overloads.set(
      node.id,
      declared.overloads.map(({ overload }) => overload),
    );
  }

  /** A signature with fresh type variables. */
  #instantiate({ overload, typeParameters }: DeclaredOverload): {
    readonly parameters: readonly CelType[];
    readonly result: CelType;
  } {
    if (typeParameters.length === 0) {
      return overload;
    }
    const fresh = new Map(typeParameters.map((name) => [name, this.#freeVariable()]));
    const replace = (type: CelType): CelType =>
      type.kind === 'parameter' ? (fresh.get(type.name) ?? type) : mapType(type, replace);
    return { parameters: overload.parameters.map(replace), result: replace(overload.result) };
  }

  /** The type of an object with known fields, also of an optional one. API servers warn of every index into it. */
  #indexedObject([operand]: readonly CelType[]): string | undefined {
    const type = operand && this.#unification.substitute(optionalValueType(operand) ?? operand);
    return type?.kind === 'struct' && this.#declarations.types?.json?.isJson(type.name) === true
      ? type.name
      : undefined;
  }

  #hintsForIndex(struct: string, key: Expression | undefined): readonly string[] | undefined {
    const { types } = this.#declarations;
    return types === undefined || key?.kind !== 'literal' || typeof key.value !== 'string'
      ? undefined
      : hintsForIndex(key.value, struct, types);
  }

  #noMatchingOverload(
    node: CallExpression,
    declared: DeclaredFunction,
    argTypes: readonly CelType[],
    isMember: boolean,
    hints?: readonly string[],
  ): void {
    const types = argTypes.map((type) => this.#unification.substitute(type, true));
    const applied = formatArguments(types, isMember);
    const message = `found no matching overload for '${declared.name}' applied to '${applied}'`;
    this.#report(node, message, hints ?? this.#keyHints(node) ?? hintsForCall(declared, isMember, types));
    this.#setType(node, ERROR);
  }

  /** For `labels.app-name.startsWith('a')`, which subtracts a call. */
  #keyHints(node: CallExpression): readonly string[] | undefined {
    const [, right] = node.function === Operator.Subtract || node.function === Operator.Divide ? node.args : [];
    const key = right === undefined ? undefined : keyHint(this.#parsed.source.text, right.start);
    return key?.isCertain === true ? [key.hint] : undefined;
  }

  // --- literals of lists, maps and structs -------------------------------------------------------------------------

  #checkList(node: ListExpression): Expression {
    const elements = this.#checkEach(node.elements);
    let joined: CelType | undefined;
    for (const [index, element] of node.elements.entries()) {
      const isOptional = node.optionalIndexes.has(index);
      joined = this.#join(joined, isOptional ? this.#optionalValue(element) : this.#typeAt(element));
    }
    this.#setType(node, listOf(joined ?? this.#freeVariable()));
    return elements === node.elements ? node : { ...node, elements };
  }

  #checkMap(node: MapExpression): Expression {
    let isSame = true;
    let keyType: CelType | undefined;
    let valueType: CelType | undefined;
    const entries = node.entries.map((entry) => {
      const key = this.#check(entry.key);
      keyType = this.#join(keyType, this.#typeAt(entry.key));
      const value = this.#check(entry.value);
      const type = entry.isOptional ? this.#optionalValue(entry.value) : this.#typeAt(entry.value);
      valueType = this.#join(valueType, type);
      isSame &&= key === entry.key && value === entry.value;
      return isSame ? entry : { ...entry, key, value };
    });
    this.#setType(node, mapOf(keyType ?? this.#freeVariable(), valueType ?? this.#freeVariable()));
    return isSame ? node : { ...node, entries };
  }

  /** The value type of an optional element or entry. */
  #optionalValue(node: Expression): CelType {
    const type = this.#typeAt(node);
    const inner = optionalValueType(type);
    if (inner === undefined && !isDyn(type)) {
      this.#mismatch(node, optionalOf(type), type);
    }
    return inner ?? type;
  }

  /** The common type of two elements; `dyn` if there is none. */
  #join(previous: CelType | undefined, current: CelType): CelType {
    if (previous === undefined) {
      return current;
    }
    return this.#unification.isAssignable(previous, current) ? this.#unification.mostGeneral(previous, current) : DYN;
  }

  #checkStruct(node: StructExpression): Expression {
    const message = this.#declarations.findMessage(node.typeName);
    return message === undefined ? this.#checkDeclaredStruct(node) : this.#checkMessage(node, message);
  }

  #checkMessage(node: StructExpression, message: Message & { readonly name: string }): Expression {
    this.#setType(node, message.type);
    const fields = node.fields.map((field) => {
      const value = this.#check(field.value);
      const declared = message.fields.get(field.name);
      if (declared === undefined) {
        this.#report(field, `undefined field '${field.name}'`);
      } else {
        this.#checkFieldType(field, declared);
      }
      return { ...field, value };
    });
    return { ...node, typeName: message.name, fields };
  }

  #checkDeclaredStruct(node: StructExpression): Expression {
    const meaning = this.#declarations.findIdentifier(node.typeName);
    const struct = this.#structType(node, meaning);
    this.#setType(node, struct ?? ERROR);
    let isSame = meaning === undefined || meaning.name === node.typeName;
    const fields = node.fields.map((field) => {
      const value = this.#check(field.value);
      if (struct?.kind === 'struct') {
        this.#checkField(field, struct.name);
      }
      isSame &&= value === field.value;
      return value === field.value ? field : { ...field, value };
    });
    return isSame ? node : { ...node, typeName: meaning?.name ?? node.typeName, fields };
  }

  #structType(node: StructExpression, meaning: Meaning | undefined): CelType | undefined {
    if (meaning === undefined) {
      this.#undeclared(node, node.typeName, hintsForIdentifier(node.typeName, this.#declarations, []));
      return undefined;
    }
    if (meaning.kind !== 'type') {
      this.#report(node, `'${formatType(meaning.type)}' is not a type`);
      return undefined;
    }
    if (meaning.denotes.kind !== 'struct') {
      this.#report(node, `'${formatType(meaning.denotes)}' is not a message type`);
      return undefined;
    }
    return meaning.denotes;
  }

  #checkField(field: StructExpression['fields'][number], struct: string): void {
    const declared = this.#structFieldType(field, struct, field.name);
    if (declared !== undefined) {
      this.#checkFieldType(field, declared);
    }
  }

  #checkFieldType(field: StructExpression['fields'][number], declared: CelType): void {
    const type = field.isOptional ? this.#optionalValue(field.value) : this.#typeAt(field.value);
    if (!this.#unification.isAssignable(declared, type)) {
      const found = `'${formatType(declared)}' but provided type is '${formatType(type)}'`;
      this.#report(field, `expected type of field '${field.name}' is ${found}`);
    }
  }

  // --- macros ------------------------------------------------------------------------------------------------------

  #checkComprehension(node: ComprehensionExpression): Expression {
    const range = this.#check(node.range);
    const initial = this.#check(node.initial);
    const rangeType = this.#unification.asMap(this.#typeOf(node.range));
    const accumulatorType = this.#typeAt(node.initial);
    const outer = this.#locals.length;
    this.#locals.push({ name: node.accumulator, type: accumulatorType });
    const inner = this.#locals.length;
    this.#declareVariables(node, rangeType);
    const condition = this.#check(node.condition);
    this.#assertType(node.condition, BOOL);
    const step = this.#check(node.step);
    this.#assertType(node.step, accumulatorType);
    this.#locals.length = inner;
    const result = this.#check(node.result);
    this.#locals.length = outer;
    this.#setType(node, this.#typeOf(node.result));
    const isSame =
      range === node.range &&
      initial === node.initial &&
      condition === node.condition &&
      step === node.step &&
      result === node.result;
    return isSame ? node : { ...node, range, initial, condition, step, result };
  }

  #declareVariables(node: ComprehensionExpression, rangeType: CelType): void {
    const [first, second] = this.#variableTypes(node, rangeType);
    this.#locals.push({ name: node.variable, type: first });
    if (node.secondVariable !== undefined) {
      this.#locals.push({ name: node.secondVariable, type: second });
    }
  }

  #variableTypes(node: ComprehensionExpression, rangeType: CelType): readonly [CelType, CelType] {
    switch (rangeType.kind) {
      case 'list':
        return node.secondVariable === undefined ? [rangeType.element, DYN] : [INT, rangeType.element];
      case 'map':
        return [rangeType.key, rangeType.value];
      case 'dyn':
      case 'error':
      case 'parameter':
        this.#unification.isAssignable(DYN, rangeType);
        return [DYN, DYN];
      default: {
        const type = formatType(rangeType);
        const message = `expression of type '${type}' cannot be range of a comprehension (must be list, map, or dynamic)`;
        this.#report(node.range, message);
        return [ERROR, ERROR];
      }
    }
  }

  #assertType(node: Expression, type: CelType): void {
    const actual = this.#typeAt(node);
    if (!this.#unification.isAssignable(type, actual)) {
      this.#mismatch(node, type, actual);
    }
  }

  // --- types and errors --------------------------------------------------------------------------------------------

  #freeVariable(): CelType {
    const variable = parameter(`_var${this.#freeVariables}`);
    this.#freeVariables += 1;
    return variable;
  }

  #setType(node: Expression, type: CelType): void {
    const isComposite = type.kind === 'list' || type.kind === 'map' || type.kind === 'opaque' || type.kind === 'type';
    if (isComposite && countTypeParts(type, MAX_TYPE_PARTS) > MAX_TYPE_PARTS) {
      this.#report(node, `the type of the expression has more than ${MAX_TYPE_PARTS} parts`);
      throw new CheckingStopped();
    }
    this.#types[node.id] = type;
  }

  /** The inferred type, which may contain type variables. */
  #typeAt(node: Expression): CelType {
    return this.#types[node.id] ?? DYN;
  }

  #typeOf(node: Expression): CelType {
    return this.#unification.substitute(this.#typeAt(node));
  }

  #undeclared(node: Expression, name: string, hints: readonly string[]): void {
    this.#report(node, `undeclared reference to '${name}' (in container '')`, hints);
    this.#setType(node, ERROR);
  }

  #mismatch(node: Expression, expected: CelType, actual: CelType): void {
    this.#report(node, `expected type '${formatType(expected)}' but found '${formatType(actual)}'`);
  }

  #report(
    at: { readonly position: number; readonly end: number; readonly id: number },
    message: string,
    hints: readonly string[] = [],
  ): void {
    const range = { start: at.position, end: at.end };
    this.#issues.push(this.#parsed.source.issue(message, range, { hints, expressionId: at.id }));
    if (this.#issues.length >= MAX_ISSUES) {
      throw new CheckingStopped();
    }
  }
}

function nameOf(node: IdentifierExpression | SelectExpression): string {
  return node.kind === 'identifier' ? node.name : '';
}

function isLocal(locals: readonly Variable[], name: string): boolean {
  return locals.some((local) => local.name === name);
}

function typeOfLiteral(value: CelValue): CelType {
  switch (typeof value) {
    case 'string':
      return STRING;
    case 'boolean':
      return BOOL;
    case 'bigint':
      return INT;
    case 'number':
      return Number.isInteger(value) ? INT : DOUBLE;
    default:
      if (value === null) {
        return NULL;
      }
      return value instanceof Uint8Array ? BYTES : value instanceof CelUint ? UINT : DOUBLE;
  }
}
