import { dump } from 'js-yaml';
import { type Option, Option as CommandOption } from 'commander';

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

/** A value as YAML or JSON, indented when `pretty`, that ends in a newline. */
export function dataText(value: unknown, format: DataFormat, { pretty = false }: { pretty?: boolean } = {}): string {
  return format === 'yaml'
    ? dump(value, { lineWidth: -1, noRefs: true })
    : `${JSON.stringify(value, undefined, pretty ? 2 : 0)}\n`;
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
