import type { AttributeValue } from '@aws-sdk/client-dynamodb';

/** An item in DynamoDB's own form. */
export type Item = Record<string, AttributeValue>;

/** The parts of a request that name what an expression stands for. */
export interface ExpressionNames {
  ExpressionAttributeNames?: Record<string, string>;
  ExpressionAttributeValues?: Record<string, AttributeValue>;
}

type Scalar = string | number | boolean | undefined;

/**
 * Judges a condition of DynamoDB on one item: comparisons, BETWEEN, IN, AND, OR, NOT, parentheses, attribute_exists,
 * attribute_not_exists, begins_with and contains. Throws on anything else, as the service does.
 * Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html
 */
export function holds(expression: string, item: Item | undefined, names: ExpressionNames): boolean {
  return new Condition(tokensOf(expression), item, names).judge();
}

const tokens = new Map<string, string[]>();

function tokensOf(expression: string): string[] {
  const known = tokens.get(expression);
  if (known) return known;
  const found = expression.match(/<=|>=|<>|[=<>(),]|[#:]?[\w.-]+/g) ?? [];
  tokens.set(expression, found);
  return found;
}

class Condition {
  private at = 0;

  constructor(
    private readonly words: readonly string[],
    private readonly item: Item | undefined,
    private readonly names: ExpressionNames,
  ) {}

  judge(): boolean {
    const verdict = this.either();
    if (this.at < this.words.length) throw new Error(`ValidationException: unexpected ${this.words[this.at]}`);
    return verdict;
  }

  private either(): boolean {
    let verdict = this.both();
    while (this.take('OR')) verdict = this.both() || verdict;
    return verdict;
  }

  private both(): boolean {
    let verdict = this.one();
    while (this.take('AND')) verdict = this.one() && verdict;
    return verdict;
  }

  private one(): boolean {
    if (this.take('NOT')) return !this.one();
    if (this.take('(')) {
      const verdict = this.either();
      this.need(')');
      return verdict;
    }
    return this.words[this.at + 1] === '(' ? this.call() : this.comparison();
  }

  private call(): boolean {
    const name = this.next();
    this.need('(');
    const path = this.next();
    const argument = this.take(',') ? this.scalar(this.next()) : undefined;
    this.need(')');
    const value = this.attribute(path);
    switch (name) {
      case 'attribute_exists':
        return value !== undefined;
      case 'attribute_not_exists':
        return value === undefined;
      case 'begins_with':
        return value?.S?.startsWith(String(argument)) ?? false;
      case 'contains':
        return value?.S?.includes(String(argument)) ?? false;
      default:
        throw new Error(`ValidationException: the simulation does not know ${name}()`);
    }
  }

  private comparison(): boolean {
    const left = this.scalar(this.next());
    if (this.take('BETWEEN')) {
      const least = this.scalar(this.next());
      this.need('AND');
      return compare(left, '>=', least) && compare(left, '<=', this.scalar(this.next()));
    }
    if (this.take('IN')) {
      this.need('(');
      const list = [this.scalar(this.next())];
      while (this.take(',')) list.push(this.scalar(this.next()));
      this.need(')');
      return list.includes(left);
    }
    return compare(left, this.next(), this.scalar(this.next()));
  }

  private scalar(word: string): Scalar {
    const value = word.startsWith(':') ? this.names.ExpressionAttributeValues?.[word] : this.attribute(word);
    if (value?.N !== undefined) return Number(value.N);
    return value?.S ?? value?.BOOL;
  }

  private attribute(word: string): AttributeValue | undefined {
    const name = word.startsWith('#') ? this.names.ExpressionAttributeNames?.[word] : word;
    return name === undefined ? undefined : this.item?.[name];
  }

  private next(): string {
    const word = this.words[this.at++];
    if (word === undefined) throw new Error('ValidationException: the expression ends too early');
    return word;
  }

  private take(word: string): boolean {
    if (this.words[this.at] !== word) return false;
    this.at += 1;
    return true;
  }

  private need(word: string): void {
    if (!this.take(word)) throw new Error(`ValidationException: expected ${word}, got ${this.words[this.at]}`);
  }
}

function compare(left: Scalar, operator: string, right: Scalar): boolean {
  if (left === undefined || right === undefined) return operator === '<>' && left !== right;
  switch (operator) {
    case '=':
      return left === right;
    case '<>':
      return left !== right;
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '>':
      return left > right;
    case '>=':
      return left >= right;
    default:
      throw new Error(`ValidationException: the simulation does not know the operator ${operator}`);
  }
}
