// Examples of pages of docs/: shell commands and what they print.

export interface Example {
  readonly line: number;
  readonly commands: string;
  readonly output: string | undefined;
}

/** The blocks of shell commands, each with its block of output, if one follows. */
export function examplesOf(text: string): readonly Example[] {
  return [...text.matchAll(/^```sh\n(.*?)^```\n(?:```text\n(.*?)^```\n)?/gms)].map((match) => ({
    line: text.slice(0, match.index).split('\n').length + 1,
    commands: match[1] ?? '',
    output: match[2],
  }));
}

/** An ellipsis in expected output matches any text on its line. */
export function outputPattern(output: string): RegExp {
  const literals = output.split('…').map((text) => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`));
  return new RegExp(`^${literals.join('[^\\n]*')}$`);
}
