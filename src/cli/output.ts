import { randomUUID } from 'node:crypto';
import { type Option, Option as CommandOption } from 'commander';
import { escapedControls } from '../values/index.ts';
import { yamlText } from './yaml-text.ts';

/** Output formats for programs. */
export type DataFormat = 'json' | 'yaml';
/** Output formats; `table` is for people. */
export type OutputFormat = 'table' | DataFormat;

/** The flag `-o`, with `table` as its default. */
export function outputOption(): Option {
  return new CommandOption('-o, --output <format>', 'output format')
    .choices(['table', 'json', 'yaml'])
    .default('table');
}

/**
 * A value as YAML or JSON, indented when `pretty`, that ends in a newline. A bigint is written as a number.
 */
export function dataText(value: unknown, format: DataFormat, { pretty = false }: { pretty?: boolean } = {}): string {
  return format === 'yaml' ? yamlText(value) : `${escapedControls(jsonText(value, pretty ? 2 : 0))}\n`;
}

/** JSON.stringify has no way to write a bigint: each becomes a marked string, and then loses its marks. */
function jsonText(value: unknown, indent: number): string {
  const mark = randomUUID();
  let isMarked = false;
  const text = JSON.stringify(
    value,
    (_key, member: unknown) => {
      isMarked ||= typeof member === 'bigint';
      return typeof member === 'bigint' ? `${mark}${member}` : member;
    },
    indent,
  );
  return isMarked ? text.replaceAll(new RegExp(`"${mark}(-?\\d+)"`, 'g'), '$1') : text;
}

/** The flag `-o` of commands that print manifests. */
export function manifestsOption(): Option {
  return new CommandOption('-o, --output <format>', 'output format; json prints a List')
    .choices(['yaml', 'json'])
    .default('yaml');
}

/** Manifests as YAML documents, or as a List in JSON. */
export function manifestsText(manifests: readonly object[], format: DataFormat): string {
  return format === 'json'
    ? dataText({ apiVersion: 'v1', kind: 'List', items: manifests }, 'json', { pretty: true })
    : manifests.map((manifest) => dataText(manifest, 'yaml')).join('---\n');
}

/** A time in microseconds, in the unit that fits. */
export function durationText(microseconds: number): string {
  return microseconds < 1_000
    ? `${microseconds.toFixed(microseconds < 100 ? 1 : 0)} µs`
    : `${(microseconds / 1_000).toFixed(microseconds < 100_000 ? 1 : 0)} ms`;
}

/** A size in bytes, such as `20.4 KiB`. */
export function sizeText(bytes: number): string {
  const units = ['KiB', 'MiB', 'GiB'];
  let value = bytes;
  let unit = 'bytes';
  while (value >= 1024 && units.length > 0) {
    value /= 1024;
    unit = units.shift() ?? unit;
  }
  return unit === 'bytes' ? `${bytes} bytes` : `${value.toFixed(value < 100 ? 1 : 0)} ${unit}`;
}

/** A whole number with separators, such as `12,345`. */
export function countText(count: number): string {
  return count.toLocaleString('en-US', { maximumFractionDigits: 0 });
}

/** `1 finding`, `12,345 findings`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}
