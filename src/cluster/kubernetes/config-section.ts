import { dirname, resolve } from 'node:path';
import { fileProblem, readWholeFile } from '../../files/index.ts';
import { ClusterError } from '../errors.ts';
import { isJsonObject } from '../../resources/index.ts';
import type { JsonObject } from '../../resources/index.ts';

/** A mapping of a kubeconfig, read field by field. Errors name the file and the field's path. */
export class ConfigSection {
  /** The kubeconfig file. */
  readonly file: string;
  /** `users[0].user`; empty for the whole file. */
  readonly path: string;
  readonly #fields: JsonObject;

  constructor(file: string, path: string, fields: JsonObject) {
    this.file = file;
    this.path = path;
    this.#fields = fields;
  }

  /** A non-empty string. */
  text(key: string): string | undefined {
    const value = this.#value(key);
    if (value === undefined || value === '') {
      return undefined;
    }
    if (typeof value !== 'string') {
      throw this.wrong(key, `a text, got ${shown(value)}`, 'put it in quotes');
    }
    return value;
  }

  requiredText(key: string, advice: string): string {
    const value = this.text(key);
    if (value === undefined) {
      throw this.wrong(key, 'a text, got nothing', advice);
    }
    return value;
  }

  flag(key: string): boolean {
    const value = this.#value(key);
    if (value === undefined) {
      return false;
    }
    if (typeof value !== 'boolean') {
      throw this.wrong(key, `true or false, got ${shown(value)}`, 'write it without quotes');
    }
    return value;
  }

  section(key: string): ConfigSection | undefined {
    const value = this.#value(key);
    if (value === undefined) {
      return undefined;
    }
    if (!isJsonObject(value)) {
      throw this.wrong(key, `a mapping, got ${shown(value)}`, 'compare it with what kubectl config view prints');
    }
    return new ConfigSection(this.file, this.#pathOf(key), value);
  }

  list(key: string): ConfigSection[] {
    return this.#entries(key).map((entry, index) => {
      if (!isJsonObject(entry)) {
        const path = `${key}[${index}]`;
        throw this.wrong(path, `a mapping, got ${shown(entry)}`, 'compare it with what kubectl config view prints');
      }
      return new ConfigSection(this.file, this.#pathOf(`${key}[${index}]`), entry);
    });
  }

  texts(key: string): string[] {
    return this.#entries(key).map((entry, index) => {
      if (typeof entry !== 'string') {
        throw this.wrong(`${key}[${index}]`, `a text, got ${shown(entry)}`, 'put it in quotes');
      }
      return entry;
    });
  }

  /** The names of the fields that have a value. */
  keys(): string[] {
    return Object.keys(this.#fields).filter((key) => this.has(key));
  }

  has(key: string): boolean {
    return this.#value(key) !== undefined;
  }

  /** A value, unchecked. */
  raw(key: string): unknown {
    return this.#value(key);
  }

  /** The path of a file that a field names, relative to the kubeconfig. */
  filePath(key: string): string | undefined {
    const path = this.text(key);
    return path === undefined ? undefined : resolve(dirname(this.file), path);
  }

  /** PEM from `key-data` in base64, or from the file in `key`. */
  async pem(key: string, label: 'CERTIFICATE' | 'PRIVATE KEY'): Promise<string | undefined> {
    const data = this.text(`${key}-data`);
    if (data !== undefined) {
      const pem = Buffer.from(data, 'base64').toString('utf8');
      if (!isPem(pem, label)) {
        throw this.wrong(
          `${key}-data`,
          `base64 of a PEM ${label}, got something else`,
          'copy it again from where it came',
        );
      }
      return pem;
    }
    const path = this.filePath(key);
    if (path === undefined) {
      return undefined;
    }
    const pem = await this.#read(key, path);
    if (!isPem(pem, label)) {
      throw this.wrong(key, `a file with a PEM ${label}, got ${path}, which has none`, 'name the right file');
    }
    return pem;
  }

  /** The error of a field: what was expected and got, and what to do. */
  wrong(key: string, expectedAndGot: string, advice: string, cause?: unknown): ClusterError {
    const message = `kubeconfig ${this.file}: ${this.#pathOf(key)}: expected ${expectedAndGot}; ${advice}`;
    return new ClusterError('kubeconfig-invalid', message, cause === undefined ? undefined : { cause });
  }

  async #read(key: string, path: string): Promise<string> {
    try {
      return (await readWholeFile(path)).toString('utf8');
    } catch (error) {
      throw this.wrong(
        key,
        `a file that can be read, got ${path} (${fileProblem(error)})`,
        'create it, or correct the path',
        error,
      );
    }
  }

  #entries(key: string): unknown[] {
    const value = this.#value(key);
    if (value === undefined) {
      return [];
    }
    if (!Array.isArray(value)) {
      throw this.wrong(key, `a list, got ${shown(value)}`, 'compare it with what kubectl config view prints');
    }
    return value;
  }

  #value(key: string): unknown {
    return Object.hasOwn(this.#fields, key) ? (this.#fields[key] ?? undefined) : undefined;
  }

  #pathOf(key: string): string {
    return this.path === '' ? key : `${this.path}.${key}`;
  }
}

function isPem(text: string, label: string): boolean {
  // The label of a key starts with its algorithm: RSA PRIVATE KEY, EC PRIVATE KEY.
  return text.includes('-----BEGIN ') && text.includes(`${label}-----`);
}

/** The type of a value for a message: never the text itself, which may be a secret. */
function shown(value: unknown): string {
  if (Array.isArray(value)) {
    return 'a list';
  }
  return value === null ? 'nothing' : typeof value === 'object' ? 'a mapping' : `a ${typeof value}`;
}
