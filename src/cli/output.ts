// What commands print on standard output.
import { dump } from 'js-yaml';
import { type Option, Option as CommandOption } from 'commander';

/** Forms of a result for programs. */
export type DataFormat = 'json' | 'yaml';
/** Forms of a result: a table is for people. */
export type OutputFormat = 'table' | DataFormat;

/** `-o` of commands that print a table unless told otherwise. */
export function outputOption(): Option {
  return new CommandOption('-o, --output <format>', 'form of the result')
    .choices(['table', 'json', 'yaml'])
    .default('table');
}

/** A value as a text that ends in a newline: YAML, or JSON on one line or (`pretty`) on many. */
export function dataText(value: unknown, format: DataFormat, { pretty = false }: { pretty?: boolean } = {}): string {
  return format === 'yaml'
    ? dump(value, { lineWidth: -1, noRefs: true })
    : `${JSON.stringify(value, undefined, pretty ? 2 : 0)}\n`;
}

/** A size as people read it: `20.4 KiB`. */
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

/** A whole number with separators: `12,345`. */
export function countText(count: number): string {
  return count.toLocaleString('en-US', { maximumFractionDigits: 0 });
}
