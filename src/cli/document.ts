// JSON and YAML documents that are named on the command line: a file, or `-` for standard input.
import { createReadStream } from 'node:fs';
import { extname } from 'node:path';
import { parseYaml, type YamlDialect, YamlSyntaxError } from '../values/yaml/index.ts';
import { errorText, parseExactJson, parseJson, textPosition } from '../values/index.ts';
import { CliError, fileProblem } from './errors.ts';
import { oneLine } from './table.ts';

/** Names standard input in place of a file. */
export const STANDARD_INPUT = '-';
/** Above the limits of reviews (7 MiB) and policies files (16 MiB). */
const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024;

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
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of path === STANDARD_INPUT ? process.stdin : createReadStream(path)) {
      const buffer = chunk as Buffer;
      bytes += buffer.length;
      if (bytes > MAX_DOCUMENT_BYTES) {
        throw new CliError(`${name} is too large: expected at most ${MAX_DOCUMENT_BYTES} bytes`);
      }
      chunks.push(buffer);
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch (error) {
    if (error instanceof CliError) {
      throw error;
    }
    if (error instanceof TypeError) {
      throw new CliError(`${name} is not text: expected UTF-8`, { cause: error });
    }
    const hint = 'Check the path; "-" stands for standard input.';
    throw new CliError(`${name} cannot be read: ${fileProblem(error)}`, { cause: error, hint });
  }
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
    const value = dialect === 'kubernetes-exact' ? parseExactJson(text) : parseJson(text);
    return [{ name, text, isJson: true, value }];
  } catch (error) {
    // A YAML flow mapping may begin with a bracket too, but JSON is more likely, and gives the better message.
    if (extname(name) === '.json' || (/^\s*[{[]/.test(text) && !isYaml(text, dialect))) {
      throw notJson(text, name, error);
    }
  }
  try {
    return parseYaml(text, dialect).map((value) => ({ name, text, isJson: false, value }));
  } catch (error) {
    const offset = error instanceof YamlSyntaxError ? error.offset : 0;
    throw malformed(text, name, offset, 'JSON or YAML', errorText(error));
  }
}

/**
 * Parses JSON from the command line.
 * @throws CliError
 */
export function parseJsonArgument(text: string, name: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    throw notJson(text, name, error);
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
  return malformed(
    text,
    name,
    at === undefined ? text.trimEnd().length : Number(at),
    'JSON',
    text === '' ? 'it is empty' : reason,
  );
}

/** The error about a text of manifests, with its place; a `.json` file is expected to be JSON. */
export function malformedManifests(text: string, name: string, error: YamlSyntaxError, hint?: string): CliError {
  const expected = extname(name) === '.json' ? 'JSON' : 'YAML';
  const options = { cause: error, ...(hint === undefined ? {} : { hint }) };
  return malformed(text, name, error.offset, expected, oneLine(error.message), options);
}

function malformed(
  text: string,
  name: string,
  offset: number,
  expected: string,
  reason: string,
  options: ConstructorParameters<typeof CliError>[1] = {},
): CliError {
  const { line, column, excerpt } = textPosition(text, offset);
  return new CliError(`${name}:${line}:${column} is not ${expected}: ${reason}\n${indented(excerpt)}`, options);
}

function indented(text: string): string {
  return text.replaceAll(/^/gm, '  ');
}
