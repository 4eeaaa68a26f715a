// Makes Helm templates from objects. The objects are built from marks instead of values, and each mark in the result becomes
// the Helm expression of its value. So the chart has no logic of its own.
import { commentedYaml } from './commented-yaml.ts';
import {
  type InstallValues,
  isSection,
  type ValueDeclaration,
  type ValueSection,
  type ValueType,
} from '../src/installation/objects/install-values.ts';

/** The delimiters of a mark, around the path of a value. No other text has them. */
const OPEN = '⟦';
const CLOSE = '⟧';
const MARK = /⟦([^⟦⟧]+)⟧/g;
const NAMESPACE = '@namespace';

const mark = (path: string): string => `${OPEN}${path}${CLOSE}`;

/** The input of objects for templates. */
export const templateValues = {
  namespace: mark(NAMESPACE),
  /** Marks in place of values; the only element of a list, the only field of an object. */
  of: (declaration: ValueSection): InstallValues => marks(declaration, '') as InstallValues,
};

function marks({ values }: ValueSection, path: string): object {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      const at = `${path}${name}`;
      return [name, isSection(value) ? marks(value, `${at}.`) : markOf(value.type, mark(at))];
    }),
  );
}

function markOf(type: ValueType, text: string): unknown {
  switch (type) {
    case 'list':
    case 'texts':
      return [text];
    case 'object':
      return { [text]: text };
    default:
      return text;
  }
}

/** An expression and its place in the line. */
interface Slot {
  readonly expression: string;
  /** A value within a line; a text that may be empty; a list or an object as a whole value; elements among others. */
  readonly kind: 'scalar' | 'optional' | 'whole' | 'parts';
}

const SLOT_LINE = /^( *)(.*?)SLOT(\d+)SLOT(?:: SLOT\d+SLOT)?$/;

/** The template of an object that was built from `templateValues`. */
export function templateText(object: unknown, declaration: ValueSection): string {
  const slots: Slot[] = [];
  const slotted = withSlots(object, declaration, slots);
  const text = commentedYaml(slotted);
  if (text.includes('{{') || text.includes(OPEN)) {
    throw new Error(`a text that Helm would take for an expression, or a mark in a place that has none:\n${text}`);
  }
  return text
    .split('\n')
    .map((line) => {
      const [, indent = '', before = '', number] = SLOT_LINE.exec(line) ?? [];
      const slot = number === undefined ? undefined : slots[Number(number)];
      return slot === undefined ? line : slotLine(slot, indent, before);
    })
    .join('\n');
}

/** The template of an object for each element of a list of texts. @param path of the list */
export function templateForEach(object: unknown, declaration: ValueSection, path: string): string {
  const list = expressionOf(path);
  const element = templateText(object, declaration)
    .replaceAll(`(join "," ${list})`, '.')
    .replaceAll(list, '.')
    .replaceAll(expressionOf(NAMESPACE), `$${expressionOf(NAMESPACE)}`);
  return `{{- range ${list} }}\n---\n${element}{{- end }}\n`;
}

function slotLine({ kind, expression }: Slot, indent: string, before: string): string {
  if ((kind === 'optional' || kind === 'whole') && before.startsWith('- ')) {
    throw new Error(`${expression} may be empty, and is the first field of an element: put another field first`);
  }
  /** The line, unless the value is empty. */
  const whenGiven = (line: string): string =>
    `${indent}{{- with ${expression} }}\n${indent}${line}\n${indent}{{- end }}`;
  switch (kind) {
    case 'scalar':
      return `${indent}${before}{{ ${expression} }}`;
    case 'optional':
      return whenGiven(`${before}{{ . | quote }}`);
    case 'whole':
      return whenGiven(`${before.trimEnd()} {{- toYaml . | nindent ${indent.length + 2} }}`);
    default:
      return whenGiven(`{{- toYaml . | nindent ${indent.length} }}`);
  }
}

function withSlots(value: unknown, declaration: ValueSection, slots: Slot[]): unknown {
  const slot = (kind: Slot['kind'], expression: string): string => `SLOT${slots.push({ kind, expression }) - 1}SLOT`;
  if (typeof value === 'string') {
    return value.includes(OPEN) ? slot('scalar', textExpression(value, declaration)) : value;
  }
  if (Array.isArray(value)) {
    const [first] = value as unknown[];
    const only = value.length === 1 ? listPath(first, declaration) : undefined;
    return only === undefined
      ? value.map((one: unknown) => {
          const path = listPath(one, declaration);
          return path === undefined ? withSlots(one, declaration, slots) : slot('parts', path);
        })
      : slot('whole', only);
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  const entries = Object.entries(value);
  const [first] = entries;
  if (entries.length === 1 && first?.[0].startsWith(OPEN) === true) {
    return slot('whole', expressionOf(first[0].slice(1, -1)));
  }
  return Object.fromEntries(
    entries.map(([name, field]) => {
      if (name.startsWith(OPEN)) {
        const parts = slot('parts', expressionOf(name.slice(1, -1)));
        return [parts, parts];
      }
      const optional = typeof field === 'string' ? optionalPath(field, declaration) : undefined;
      return [name, optional === undefined ? withSlots(field, declaration, slots) : slot('optional', optional)];
    }),
  );
}

/** The path of the list whose mark is this element. */
function listPath(element: unknown, declaration: ValueSection): string | undefined {
  const [, path] = typeof element === 'string' ? (/^⟦([^⟦⟧]+)⟧$/.exec(element) ?? []) : [];
  const isList = path !== undefined && ['list', 'texts'].includes(typeOf(path, declaration));
  return isList ? expressionOf(path) : undefined;
}

/** The expression of a field whose text is empty by default. */
function optionalPath(field: string, declaration: ValueSection): string | undefined {
  const [, path] = /^⟦([^⟦⟧@]+)⟧$/.exec(field) ?? [];
  return path !== undefined && valueOf(path, declaration).default === '' ? expressionOf(path) : undefined;
}

/** The expression of a text with values in it. */
function textExpression(text: string, declaration: ValueSection): string {
  const paths = [...text.matchAll(MARK)].map(([, path = '']) => path);
  const [path = ''] = paths;
  const isWhole = text === mark(path);
  if (isWhole && typeOf(path, declaration) === 'integer') {
    return `int ${expressionOf(path)}`;
  }
  if (isWhole) {
    return `${expressionOf(path)} | quote`;
  }
  const formatted = JSON.stringify(text.replaceAll('%', '%%').replaceAll(MARK, '%v'));
  return `printf ${formatted} ${paths.map((one) => argument(one, declaration)).join(' ')} | quote`;
}

function argument(path: string, declaration: ValueSection): string {
  switch (typeOf(path, declaration)) {
    // Helm reads numbers as floating point.
    case 'integer':
      return `(int ${expressionOf(path)})`;
    case 'texts':
      return `(join "," ${expressionOf(path)})`;
    default:
      return expressionOf(path);
  }
}

function expressionOf(path: string): string {
  return path === NAMESPACE ? '.Release.Namespace' : `.Values.${path}`;
}

function typeOf(path: string, declaration: ValueSection): ValueType {
  return path === NAMESPACE ? 'text' : valueOf(path, declaration).type;
}

function valueOf(path: string, declaration: ValueSection): ValueDeclaration {
  let at: ValueSection = declaration;
  for (const name of path.split('.')) {
    const value = at.values[name];
    if (value === undefined) {
      throw new Error(`there is no value ${path}`);
    }
    if (!isSection(value)) {
      return value;
    }
    at = value;
  }
  throw new Error(`${path} is a section of values`);
}
