import { textPosition } from '../../values/index.ts';
import { parseYaml, YamlPositions, YamlSyntaxError } from '../../values/yaml/index.ts';
import { ModuleError, type ModuleErrorCode } from '../reference/errors.ts';

/** Keys and indexes from the root of a document to a value. */
export type ValuePath = readonly (string | number)[];
export type Mapping = Readonly<Record<string, unknown>>;

interface ConfigText {
  readonly text: string;
  /** For messages. */
  readonly fileName: string;
  /** Of every error. */
  readonly code: ModuleErrorCode;
  readonly maxBytes: number;
}

/** Reads a configuration file (YAML or JSON). Errors name file, line, column and field. */
export class ConfigReader {
  readonly #config: ConfigText;

  /** @throws ModuleError if the text is too large */
  constructor(config: ConfigText) {
    this.#config = config;
    const { text, fileName, code, maxBytes } = config;
    if (Buffer.byteLength(text) > maxBytes) {
      throw new ModuleError(code, `${fileName} is too large: expected at most ${maxBytes} bytes`);
    }
  }

  /** The only document of the text; undefined if it is empty. */
  document(): unknown {
    const { fileName, code } = this.#config;
    const [document, ...more] = this.#documents();
    if (more.length > 0) {
      throw new ModuleError(code, `${fileName}: not valid YAML: expected one document, got several`);
    }
    return document;
  }

  #documents(): unknown[] {
    const { text, fileName, code } = this.#config;
    try {
      return parseYaml(text, 'core');
    } catch (error) {
      if (!(error instanceof YamlSyntaxError)) {
        throw error;
      }
      const { line, column } = textPosition(text, error.offset);
      const message = `${fileName}:${line}:${column}: not valid YAML: ${error.message}`;
      throw new ModuleError(code, message, { cause: error });
    }
  }

  /** @param known the keys that are allowed. Default: all */
  mapping(value: unknown, path: ValuePath, known?: readonly string[]): Mapping {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw this.error(path, `expected a mapping, got ${show(value)}`);
    }
    const unknownKey = known === undefined ? undefined : Object.keys(value).find((key) => !known.includes(key));
    if (unknownKey !== undefined) {
      throw this.error([...path, unknownKey], `unknown key: expected ${(known ?? []).join(', ')}`);
    }
    return value as Mapping;
  }

  /** A list; empty when absent. */
  list(value: unknown, path: ValuePath, maxItems?: number): readonly unknown[] {
    if (isAbsent(value)) {
      return [];
    }
    if (!Array.isArray(value)) {
      throw this.error(path, `expected a list, got ${show(value)}`);
    }
    if (maxItems !== undefined && value.length > maxItems) {
      throw this.error(path, `expected at most ${maxItems} items, got ${value.length}`);
    }
    return value;
  }

  /** A text that is not empty. */
  string(value: unknown, path: ValuePath): string {
    if (typeof value !== 'string' || value === '') {
      throw this.error(path, `expected a string, got ${show(value)}`);
    }
    return value;
  }

  error(path: ValuePath, expectation: string): ModuleError {
    const { text, fileName, code } = this.#config;
    const where = path.length === 0 ? '' : ` ${path.join('.')}:`;
    return new ModuleError(code, `${fileName}${positionIn(text, path)}:${where} ${expectation}`);
  }
}

/** `:line:column`; empty for JSON that is not YAML as well. */
function positionIn(text: string, path: ValuePath): string {
  try {
    const { line, column } = textPosition(text, new YamlPositions(text).offsetOf(path));
    return `:${line}:${column}`;
  } catch {
    return '';
  }
}

/** Whether a field is missing or null. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** A value for an error message. */
export function show(value: unknown): string {
  if (Array.isArray(value)) {
    return 'a list';
  }
  if (typeof value === 'object' && value !== null) {
    return 'a mapping';
  }
  return value === undefined ? 'nothing' : JSON.stringify(value).slice(0, 80);
}
