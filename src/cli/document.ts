// JSON and YAML documents that are named on the command line: a file, or `-` for standard input.
import { extname } from 'node:path';
import { FileError, fileProblem, MAX_FILE_BYTES, readWholeFile, readWholeStream } from '../files/index.ts';
import { parseYaml, type YamlDialect, YamlLimitError, YamlSyntaxError } from '../values/yaml/index.ts';
import { errorText, isNestedDeeper, parseExactJson, parseJson, textPosition } from '../values/index.ts';
import { CliError } from './errors.ts';
import { oneLine } from './table.ts';

/** Names standard input in place of a file. */
export const STANDARD_INPUT = '-';
/** Deepest nesting of JSON, as of reviews: recursive code walks it later. */
const MAX_JSON_DEPTH = 1_000;

export interface Document {
  /** The name for messages. */
  readonly name: string;
  readonly text: string;
  /** Whether the text is JSON, and can be passed on unchanged. */
  readonly isJson: boolean;
  readonly value: unknown;
}

/**
 * Reads a file, or standard input for `-`.
 * @throws CliError when it cannot be read, is too large or not UTF-8
 */
export async function readText(path: string): Promise<string> {
  const name = documentName(path);
  try {
    const bytes = await (path === STANDARD_INPUT
      ? readWholeStream(process.stdin, MAX_FILE_BYTES)
      : readWholeFile(path));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw unreadable(name, error);
  }
}

function unreadable(name: string, error: unknown): CliError {
  if (error instanceof FileError && error.code === 'file-too-large') {
    const hint = 'Split it into several files, or name the right one.';
    return new CliError(`${name} is too large: expected at most ${MAX_FILE_BYTES} bytes`, { cause: error, hint });
  }
  if (error instanceof TypeError) {
    return new CliError(`${name} is not text: expected UTF-8`, { cause: error });
  }
  const hint = 'Check the path; "-" stands for standard input.';
  return new CliError(`${name} cannot be read: ${fileProblem(error)}`, { cause: error, hint });
}

/**
 * Reads a JSON or YAML document.
 * @throws CliError with line, column and excerpt when it is neither
 */
export async function readDocument(path: string, dialect: YamlDialect = 'kubernetes'): Promise<Document> {
  return parseDocument(await readText(path), documentName(path), dialect);
}

/** As {@link readDocument}, for a text. */
export function parseDocument(text: string, name: string, dialect: YamlDialect = 'kubernetes'): Document {
  const documents = parseDocuments(text, name, dialect);
  if (documents.length > 1) {
    throw new CliError(`${name} holds ${documents.length} YAML documents: expected one`);
  }
  return documents[0] ?? { name, text, isJson: false, value: undefined };
}

/** All documents of a text. @throws CliError as {@link readDocument} does */
export function parseDocuments(text: string, name: string, dialect: YamlDialect = 'kubernetes'): readonly Document[] {
  try {
    return [{ name, text, isJson: true, value: shallowJson(text, name, dialect) }];
  } catch (error) {
    if (error instanceof CliError) {
      throw error;
    }
    // A YAML flow mapping may begin with a bracket too, but JSON is more likely, and gives the better message.
    if (extname(name) === '.json' || (/^\s*[{[]/.test(text) && !isYaml(text, dialect))) {
      throw notJson(text, name, error);
    }
  }
  try {
    return parseYaml(text, dialect).map((value) => ({ name, text, isJson: false, value }));
  } catch (error) {
    throw malformedYaml(text, name, error, 'JSON or YAML');
  }
}

/** @throws CliError when values are nested too deep, SyntaxError when the text is not JSON */
function shallowJson(text: string, name: string, dialect: YamlDialect): unknown {
  const value = dialect === 'kubernetes-exact' ? parseExactJson(text) : parseJson(text);
  if (isNestedDeeper(text, MAX_JSON_DEPTH)) {
    throw new CliError(`${name} is nested too deep: expected at most ${MAX_JSON_DEPTH} levels`);
  }
  return value;
}

/**
 * Parses JSON from the command line.
 * @throws CliError
 */
export function parseJsonArgument(text: string, name: string): unknown {
  try {
    return shallowJson(text, name, 'kubernetes');
  } catch (error) {
    throw error instanceof CliError ? error : notJson(text, name, error);
  }
}

function isYaml(text: string, dialect: YamlDialect): boolean {
  try {
    return parseYaml(text, dialect).length > 0;
  } catch {
    return false;
  }
}

/** The name of a file for messages. */
export function documentName(path: string): string {
  return path === STANDARD_INPUT ? 'standard input' : path;
}

function notJson(text: string, name: string, error: unknown): CliError {
  const message = errorText(error);
  const at = /position (\d+)/.exec(message)?.[1];
  const [reason = message] = message.split(/ in JSON| is not valid JSON|, "|, \.\.\./);
  const offset = at === undefined ? text.trimEnd().length : Number(at);
  return placedError(text, name, offset, `is not JSON: ${text === '' ? 'it is empty' : reason}`);
}

/** The error about a text of manifests, with its place; a `.json` file is expected to be JSON. */
export function malformedManifests(text: string, name: string, error: YamlSyntaxError, hint?: string): CliError {
  const expected = extname(name) === '.json' ? 'JSON' : 'YAML';
  return malformedYaml(text, name, error, expected, { cause: error, ...(hint === undefined ? {} : { hint }) });
}

type ErrorOptions = ConstructorParameters<typeof CliError>[1];

function malformedYaml(text: string, name: string, error: unknown, expected: string, options?: ErrorOptions): CliError {
  const offset = error instanceof YamlSyntaxError ? error.offset : 0;
  const reason = oneLine(errorText(error));
  const problem = error instanceof YamlLimitError ? reason : `is not ${expected}: ${reason}`;
  return placedError(text, name, offset, problem, options);
}

function placedError(text: string, name: string, offset: number, problem: string, options?: ErrorOptions): CliError {
  const { line, column, excerpt } = textPosition(text, offset);
  return new CliError(`${name}:${line}:${column} ${problem}\n${indented(excerpt)}`, options);
}

function indented(text: string): string {
  return text.replaceAll(/^/gm, '  ');
}
