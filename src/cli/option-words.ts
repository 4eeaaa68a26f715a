// What completions need to know about options.
import type { Option } from 'commander';

/** Its short and its long name. */
export const optionNames = ({ short, long }: Option): string[] => [short, long].filter((name) => name !== undefined);

/** Whether the option takes a value. */
export const takesValue = ({ required, optional }: Option): boolean => required || optional;

/** Whether the value is the path of a file or folder. */
export const takesPath = ({ flags }: Option): boolean => /<(?:file|files|folder)(?:\.{3})?>/.test(flags);
