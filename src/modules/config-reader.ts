import { CORE_SCHEMA, loadAll, YAMLException } from 'js-yaml';

import { ModuleError, type ModuleErrorCode } from './errors.ts';
import { yamlPosition } from './yaml-position.ts';
import type { ValuePath } from './yaml-position.ts';

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
    const { text, fileName, code } = this.#config;
    try {
      const [document, ...more] = loadAll(text, { schema: CORE_SCHEMA });
      if (more.length > 0) {
        throw new YAMLException('expected one document, got several');
      }
      return document;
    } catch (error) {
      const mark = error instanceof YAMLException ? error.mark : undefined;
      const reason = error instanceof YAMLException ? error.reason : String(error);
      const at = mark === undefined ? '' : `:${mark.line + 1}:${mark.column + 1}`;
      throw new ModuleError(code, `${fileName}${at}: not valid YAML: ${reason}`, { cause: error });
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
    const { line, column } = yamlPosition(text, path);
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
