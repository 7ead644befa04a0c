// SPDX-License-Identifier: GPL-2.0
// hot ROUNDS: typical work of C++ programs. Most of the time is in one function of a template.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace app {

template <typename T, int Size> class Matrix {
public:
	explicit Matrix(T first) : cells(Size * Size)
	{
		for (auto &cell : cells)
			cell = first = first * 5 / 3 - 1;
	}

	__attribute__((noinline)) Matrix multiply(const Matrix &other) const
	{
		Matrix product(0);

		for (int i = 0; i < Size; i++)
			for (int j = 0; j < Size; j++) {
				T sum = 0;

				for (int k = 0; k < Size; k++)
					sum += cells[i * Size + k] * other.cells[k * Size + j];
				product.cells[i * Size + j] = sum;
			}
		return product;
	}

	T trace() const
	{
		T sum = 0;

		for (int i = 0; i < Size; i++)
			sum += cells[i * Size + i];
		return sum;
	}

private:
	std::vector<T> cells;
};

static size_t count(int n)
{
	std::map<std::string, int> counts;
	std::vector<std::string> words;

	for (int i = 0; i < n; i++)
		words.push_back("word" + std::to_string(i * 7919L % 1000));
	std::sort(words.begin(), words.end());
	for (const auto &word : words)
		counts[word]++;
	return counts.size();
}

} // namespace app

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
	app::Matrix<unsigned long, 150> matrix(1);
	size_t words = 0;

	for (int i = 0; i < rounds; i++) {
		matrix = matrix.multiply(matrix);
		words += app::count(1000);
	}
	std::printf("%lu %zu\n", matrix.trace(), words);
	return 0;
}
