/** Half the width of an 80 % interval of a normal distribution, in standard deviations. */
export const HALF_OF_80 = 1.2816;
