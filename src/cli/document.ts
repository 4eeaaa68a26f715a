// Documents that users name on the command line: JSON or YAML, in a file or on standard input.
import { createReadStream } from 'node:fs';
import { extname } from 'node:path';
import { parseYaml, textPosition, YamlSyntaxError } from '../engine/index.ts';
import { CliError, errorText, fileProblem } from './errors.ts';

/** Stands for standard input where a file is asked for. */
const STANDARD_INPUT = '-';
/** Nothing that a command reads is larger: reviews have at most 7 MiB, policies files 16. */
const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024;

/** A document that was read. */
export interface Document {
  /** What messages call it. */
  readonly name: string;
  readonly text: string;
  /** The file is JSON, so that its text can be handed on as it is. */
  readonly isJson: boolean;
  readonly value: unknown;
}

/** Which scalars of YAML are numbers and booleans: as kubectl reads them, or as YAML 1.2 does. */
type YamlDialect = 'kubernetes' | 'core';

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

/** As {@link readDocument}, for a text that is there already. */
export function parseDocument(text: string, name: string, dialect: YamlDialect = 'kubernetes'): Document {
  try {
    return { name, text, isJson: true, value: JSON.parse(text) };
  } catch (error) {
    // Flow YAML begins with a bracket too, but whoever wrote that most likely meant JSON.
    if (extname(name) === '.json' || (/^\s*[{[]/.test(text) && !isYaml(text, dialect))) {
      throw notJson(text, name, error);
    }
  }
  let documents: unknown[];
  try {
    documents = parseYaml(text, dialect);
  } catch (error) {
    const offset = error instanceof YamlSyntaxError ? error.offset : 0;
    throw malformed(text, name, offset, 'JSON or YAML', errorText(error));
  }
  if (documents.length > 1) {
    throw new CliError(`${name} holds ${documents.length} YAML documents: expected one`);
  }
  return { name, text, isJson: false, value: documents[0] };
}

/**
 * Parses JSON that was given as an argument.
 * @throws CliError
 */
export function parseJsonArgument(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
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

function documentName(path: string): string {
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

function malformed(text: string, name: string, offset: number, expected: string, reason: string): CliError {
  const { line, column, excerpt } = textPosition(text, offset);
  return new CliError(`${name}:${line}:${column} is not ${expected}: ${reason}\n${indented(excerpt)}`);
}

function indented(text: string): string {
  return text.replaceAll(/^/gm, '  ');
}
