import {
  boolYaml11Tag,
  constructFromEvents,
  CORE_SCHEMA,
  defineScalarTag,
  EVENT_ID,
  getScalarValue,
  mapTag,
  mergeTag,
  NOT_RESOLVED,
  nullYaml11Tag,
  parseEvents,
  Schema,
  seqTag,
  strTag,
  YAMLException,
} from 'js-yaml';
import { errorText } from '../error-text.ts';
import { aliasFault } from './alias-bounds.ts';

/** Maximum number of aliases in a document. What they stand for has its own bounds. */
const MAX_ALIASES = 10_000;
/** Maximum number of documents: twice the objects of a large cluster's applications. */
const MAX_DOCUMENTS = 100_000;
/** Maximum nesting of collections. js-yaml's own default; Kubernetes manifests stay below 30. */
const MAX_YAML_DEPTH = 100;

const DIGITS = '+-0123456789'.split('');
const INTEGER = /^[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const INFINITY = /^([-+]?)\.(?:inf|Inf|INF)$/;
const NOT_A_NUMBER = /^\.(?:nan|NaN|NAN)$/;

/** The largest integer that Go reads from YAML; larger ones are floating-point numbers there, too. */
const MAX_UINT64 = 2n ** 64n - 1n;

/** Integers as in Go's ParseInt with base 0: underscores, 0x, 0b, 0o, and 012 as octal; no base 60. */
function goInteger(isExact: boolean): ReturnType<typeof defineScalarTag<number | bigint>> {
  return defineScalarTag<number | bigint>('tag:yaml.org,2002:int', {
    implicit: true,
    implicitFirstChars: DIGITS,
    resolve: (source) => {
      const plain = source.replaceAll('_', '');
      if (!INTEGER.test(plain)) {
        return NOT_RESOLVED;
      }
      const negative = plain.startsWith('-');
      const digits = plain.replace(/^[-+]/, '').replace(/^0(?=[0-7])/, '0o');
      const rounded = Number(digits);
      const value = isExact ? exactInteger(digits, rounded) : rounded;
      return negative ? -value : value;
    },
    identify: () => false,
  });
}

/** A bigint where a number would round; large texts are not converted, which takes quadratic time. */
function exactInteger(digits: string, rounded: number): number | bigint {
  if (Number.isSafeInteger(rounded) || rounded > Number(MAX_UINT64)) {
    return rounded;
  }
  const exact = BigInt(digits);
  return exact > MAX_UINT64 ? rounded : exact;
}

const goFloat = defineScalarTag<number>('tag:yaml.org,2002:float', {
  implicit: true,
  implicitFirstChars: [...DIGITS, '.'],
  resolve: (source) => {
    const plain = source.replaceAll('_', '');
    if (FLOAT.test(plain)) {
      return Number(plain);
    }
    if (NOT_A_NUMBER.test(source)) {
      return Number.NaN;
    }
    const infinity = INFINITY.exec(source);
    return infinity === null ? NOT_RESOLVED : infinity[1] === '-' ? -Infinity : Infinity;
  },
  identify: () => false,
});

/**
 * Scalars as kubectl and the API server read them (sigs.k8s.io/yaml): YAML 1.1 booleans (`yes`, `on`, `y`), Go's
 * numbers, merge keys. Dates stay text; tags of other types are errors.
 */
const kubernetesSchema = (isExact: boolean): Schema =>
  new Schema([strTag, seqTag, mapTag, nullYaml11Tag, boolYaml11Tag, goInteger(isExact), goFloat, mergeTag]);

const SCHEMAS = {
  kubernetes: kubernetesSchema(false),
  'kubernetes-exact': kubernetesSchema(true),
  core: CORE_SCHEMA,
} as const;

/**
 * How plain scalars are resolved: `kubernetes` as kubectl reads them, `kubernetes-exact` likewise, with a bigint for each
 * integer that a number would round, `core` as in YAML 1.2 (and serde).
 */
export type YamlDialect = keyof typeof SCHEMAS;

/** A syntax error with its position. */
export class YamlSyntaxError extends Error {
  override readonly name = 'YamlSyntaxError';
  readonly offset: number;

  constructor(reason: string, offset: number, cause?: unknown) {
    super(reason, cause === undefined ? undefined : { cause });
    this.offset = offset;
  }
}

/**
 * All documents of a YAML (or JSON) text. Aliased values are the same object; none contains itself, and what they stand for is
 * bounded, so that values can be visited as trees.
 * @param maxDepth most levels of collections, also when aliases are written out
 * @throws YamlSyntaxError
 */
export function parseYaml(
  text: string,
  dialect: YamlDialect = 'kubernetes',
  maxDepth: number = MAX_YAML_DEPTH,
): unknown[] {
  try {
    return constructFromEvents(boundedEvents(text, maxDepth), {
      source: text,
      schema: SCHEMAS[dialect],
      maxAliases: MAX_ALIASES,
    });
  } catch (error) {
    if (error instanceof YamlSyntaxError) {
      throw error;
    }
    if (error instanceof YAMLException) {
      // What is missing at the end of the text belongs to its last line.
      const offset = Math.min(error.mark?.position ?? 0, text.trimEnd().length);
      throw new YamlSyntaxError(error.reason, offset, error);
    }
    throw new YamlSyntaxError(errorText(error), 0, error);
  }
}

/** A text that is YAML, and exceeds a bound. */
export class YamlLimitError extends YamlSyntaxError {}

function boundedEvents(text: string, maxDepth: number): YamlEvent[] {
  const events = parseEvents(text, { maxDepth });
  const fault = aliasFault(text, events, maxDepth);
  if (fault !== undefined) {
    throw new YamlLimitError(fault.reason, fault.offset);
  }
  const excess = events.filter(({ type }) => type === EVENT_ID.DOCUMENT).length - MAX_DOCUMENTS;
  if (excess > 0) {
    throw new YamlLimitError(`expected at most ${MAX_DOCUMENTS} documents, got ${MAX_DOCUMENTS + excess}`, 0);
  }
  return events;
}

type YamlEvent = ReturnType<typeof parseEvents>[number];

interface YamlNode {
  readonly start: number;
  /** The end of a scalar's text. Default: the value is no scalar. */
  readonly end?: number;
  /** Keys of a mapping, indices of a sequence. */
  readonly children: Map<string, { readonly keyStart: number; readonly node: YamlNode }>;
}

const WHITE_SPACE = /\s/;

/** Positions of values in a YAML text. Built only to report mistakes. */
export class YamlPositions {
  readonly #text: string;
  readonly #events: readonly YamlEvent[];
  #at = 0;
  /** By document. */
  readonly #roots: readonly (YamlNode | undefined)[];

  /** `text` must be valid for {@link parseYaml}. */
  constructor(text: string) {
    this.#text = text;
    this.#events = parseEvents(text, { maxDepth: MAX_YAML_DEPTH });
    this.#roots = this.#events.flatMap(({ type }, index) => {
      this.#at = index + 1;
      return type === EVENT_ID.DOCUMENT ? [this.#node()] : [];
    });
  }

  /**
   * Offset of the key (or list element) at `path`, or of its innermost existing parent.
   * @param document its index. Default: the first
   */
  offsetOf(path: readonly (string | number)[], document = 0): number {
    return this.#find(path, document).offset;
  }

  /**
   * Offset in the text at `path` of what follows `beginning`. Indentation and folding change white space only, so that
   * all other characters are compared. Where escapes make them differ, the start of the text; without a text at `path`,
   * {@link offsetOf}.
   */
  offsetInText(path: readonly (string | number)[], beginning: string, document = 0): number {
    const { offset, node } = this.#find(path, document);
    if (node?.end === undefined) {
      return offset;
    }
    const skipSpace = (at: number): number => {
      let next = at;
      while (next < end && WHITE_SPACE.test(this.#text.charAt(next))) {
        next += 1;
      }
      return next;
    };
    const { end } = node;
    const start = skipSpace(node.start);
    let at = start;
    for (const character of beginning.replaceAll(/\s/g, '')) {
      if (!this.#text.startsWith(character, at)) {
        return start;
      }
      at = skipSpace(at + character.length);
    }
    return at <= end ? at : start;
  }

  /** The value at a path with the offset of its key. Of one that is not there, the innermost parent without its value. */
  #find(path: readonly (string | number)[], document: number): { readonly offset: number; readonly node?: YamlNode } {
    let node = this.#roots[document];
    let offset = node?.start ?? 0;
    for (const key of path) {
      const child = node?.children.get(String(key));
      if (child === undefined) {
        return { offset };
      }
      offset = child.keyStart;
      node = child.node;
    }
    return node === undefined ? { offset } : { offset, node };
  }

  #node(): YamlNode | undefined {
    const event = this.#events[this.#at++];
    const children: YamlNode['children'] = new Map();
    switch (event?.type) {
      case EVENT_ID.SCALAR:
        return { start: event.valueStart, end: event.valueEnd, children };
      case EVENT_ID.ALIAS:
        return { start: event.anchorStart, children };
      case EVENT_ID.MAPPING:
        while (!this.#isClosed()) {
          const key = this.#key();
          const keyStart = this.#node()?.start ?? event.start;
          const node = this.#node();
          if (key !== undefined && node !== undefined) {
            children.set(key, { keyStart, node });
          }
        }
        return { start: event.start, children };
      case EVENT_ID.SEQUENCE:
        for (let index = 0; !this.#isClosed(); index++) {
          const node = this.#node();
          if (node !== undefined) {
            children.set(String(index), { keyStart: node.start, node });
          }
        }
        return { start: event.start, children };
      default:
        return undefined;
    }
  }

  /** The next event's text if it is a scalar, otherwise undefined. */
  #key(): string | undefined {
    const event = this.#events[this.#at];
    return event?.type === EVENT_ID.SCALAR ? getScalarValue(this.#text, event) : undefined;
  }

  /** Skips the end of the innermost collection if it is next. */
  #isClosed(): boolean {
    const event = this.#events[this.#at];
    if (event === undefined) {
      return true;
    }
    if (event.type === EVENT_ID.POP) {
      this.#at++;
      return true;
    }
    return false;
  }
}
