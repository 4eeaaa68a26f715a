export { parseYaml, YamlPositions, YamlSyntaxError } from './yaml-text.ts';
