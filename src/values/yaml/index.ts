export { parseYaml, YamlLimitError, YamlPositions, YamlSyntaxError } from './yaml-text.ts';
export type { YamlDialect } from './yaml-text.ts';
